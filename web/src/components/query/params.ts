// How a result is drawn, in the address.

import { type PlotChoice, TABLE } from "../../state/queries";

export function choiceOf(params: Readonly<Record<string, string>>): PlotChoice {
	const form = params["form"];
	return {
		form: form === "line" || form === "stack" || form === "dots" ? form : TABLE.form,
		x: params["x"] ?? "",
		y: (params["y"] ?? "").split(",").filter((part) => part !== ""),
		series: params["series"] ?? "",
		log: params["log"] === "1",
	};
}

export function choiceParams(choice: PlotChoice): Record<string, string | null> {
	return {
		form: choice.form === TABLE.form ? null : choice.form,
		x: choice.x || null,
		y: choice.y.join(",") || null,
		series: choice.series || null,
		log: choice.log ? "1" : null,
	};
}
