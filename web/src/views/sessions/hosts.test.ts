import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import type { Traffic } from "../../api/set";
import { TrafficTable } from "./hosts";

function traffic(...before: number[]): Traffic[] {
	return before.map((n, i) => ({
		from: "a",
		to: `host${i}`,
		messages: 10,
		bytes: 640,
		fastest_ns: 1500,
		before_sent: n,
	}));
}

const tableOf = (...before: number[]) => createElement(TrafficTable, { traffic: traffic(...before) });

it("has a column of notes only if there is a note", () => {
	const none = renderToStaticMarkup(tableOf(0, 0));
	expect(none).toContain("Fastest");
	expect(none).not.toContain("Note");
	expect(none.match(/<td/g)).toHaveLength(10);
	const one = renderToStaticMarkup(tableOf(0, 3));
	expect(one).toContain("<th>Note</th>");
	expect(one).toContain("3 arrived before they were sent");
	expect(one.match(/<td/g)).toHaveLength(12);
});
