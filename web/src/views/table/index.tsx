// The calls themselves, a row each: as many as there are, of which those in sight are fetched.

import { useEffect, useState } from "react";
import { Segmented } from "../../components/segmented";
import { counted } from "../../lib/format";
import { usePage, useParam } from "../../state/store";
import { COLUMNS, chosenColumns, STANDARD, type Sums, sumsText } from "./columns";
import { Grid } from "./Grid";
import "./style.css";
import { RequestCard } from "../../components/request/card";

/** Any other order is that of a column's head. */
const ORDERS = [
	["ts_ns", "in order of time"],
	["-dur_ns", "slowest first"],
] as const;

export default function Table() {
	const page = usePage();
	const [param, setParam] = useParam("columns", "");
	const [sort, setSort] = useParam("sort", "ts_ns");
	const [total, setTotal] = useState<number | null>(null);
	const [sums, setSums] = useState<Sums | null>(null);
	const [said, setSaid] = useState("");
	const columns = chosenColumns(param);
	useEffect(() => {
		if (said === "") return;
		const timer = setTimeout(() => setSaid(""), 2500);
		return () => clearTimeout(timer);
	}, [said]);
	const choose = (id: string, on: boolean) => {
		const ids = COLUMNS.map((c) => c.id).filter((c) => (c === id ? on : columns.some((shown) => shown.id === c)));
		setParam(ids.length === STANDARD.length && STANDARD.every((c) => ids.includes(c)) ? "" : ids.join(","));
	};
	return (
		<div className={page.rid === null ? "table-view" : "table-view with-card"}>
			<div className="table-bar">
				<span>{total === null ? " " : counted(total, "call")}</span>
				<Segmented label="Order" value={sort} options={ORDERS} onChange={setSort} />
				{sums && said === "" ? (
					<b className="table-sums" role="status">
						{sumsText(sums)}
					</b>
				) : (
					<span className="faint cut">
						{said || "click: details · drag or shift-click: select and sum up · c: copy · Ctrl+C: copy all selected"}
					</span>
				)}
				<details className="dropdown">
					<summary className="button">Columns</summary>
					<div className="dropdown-list">
						{COLUMNS.map((column) => (
							<label key={column.id}>
								<input
									type="checkbox"
									checked={columns.some((shown) => shown.id === column.id)}
									onChange={(event) => choose(column.id, event.target.checked)}
								/>
								{column.title}
							</label>
						))}
					</div>
				</details>
			</div>
			<Grid columns={columns} sort={sort} setSort={setSort} setTotal={setTotal} setSums={setSums} say={setSaid} />
			{page.rid === null ? null : (
				<aside className="table-card" aria-label="Selected call">
					<RequestCard rid={page.rid} />
				</aside>
			)}
		</div>
	);
}
