// What a reader may mean while typing SQL: names of tables and columns, placeholders.

import { identifier, PLACEHOLDERS, tokens } from "./sql";

export interface Offer {
	/** What is put in. */
	text: string;
	kind: "table" | "column" | "placeholder" | "function";
	about: string;
}

export interface Offers {
	/** What of the text is replaced. */
	from: number;
	to: number;
	list: Offer[];
}

export interface Names {
	name: string;
	doc: string;
	columns: readonly { name: string; sql_type: string; doc: string }[];
}

/** Functions of fathom's own, and the most used ones of the database. */
const FUNCTIONS: readonly (readonly [string, string])[] = [
	["wall_time", "time of day of a ts_ns, UTC"],
	["time_ns", "the ts_ns of a time of day: time_ns(wall)"],
	["hash_hex", "a hash in 16 digits"],
	["duration_bucket", "the power of two of a duration"],
	["count", "number of rows"],
	["sum", "sum"],
	["avg", "mean"],
	["min", "least"],
	["max", "greatest"],
	["quantile_disc", "a quantile: quantile_disc(dur_ns, 0.99)"],
	["arg_max", "the value of a row with the greatest of another"],
];

const MOST = 12;

/** What can stand at the cursor; null where nothing is offered. `asked`: also before anything is typed. */
export function offersAt(sql: string, cursor: number, names: readonly Names[], asked: boolean): Offers | null {
	const inside = tokens(sql).find((t) => t.from < cursor && t.to > cursor - 1 && t.to >= cursor);
	if (inside && (inside.kind === "comment" || inside.kind === "text")) return null;
	const typed = /[$A-Za-z_][A-Za-z0-9_]*$/.exec(sql.slice(0, cursor))?.[0] ?? (sql[cursor - 1] === "$" ? "$" : "");
	if (typed === "" && !asked) return null;
	const from = cursor - typed.length;
	const qualifier = /([A-Za-z_][A-Za-z0-9_]*)\.$/.exec(sql.slice(0, from))?.[1];
	const mentioned = tablesIn(sql, names);
	const all: Offer[] = [];
	if (typed.startsWith("$")) {
		for (const [text, about] of PLACEHOLDERS) all.push({ text, kind: "placeholder", about });
	} else {
		const table = qualifier === undefined ? undefined : (aliases(sql, names).get(qualifier.toLowerCase()) ?? null);
		const behind = /\b(?:from|join)\s+$/i.test(sql.slice(0, from));
		const of = table === undefined ? (behind ? [] : mentioned) : table === null ? [] : [table];
		const seen = new Set<string>();
		for (const { name, columns } of of) {
			for (const column of columns) {
				if (seen.has(column.name)) continue;
				seen.add(column.name);
				all.push({
					text: identifier(column.name),
					kind: "column",
					about: `${name}, ${column.sql_type}: ${column.doc}`,
				});
			}
		}
		if (qualifier === undefined) {
			for (const { name, doc } of names) all.push({ text: identifier(name), kind: "table", about: doc });
			if (!behind) for (const [text, about] of FUNCTIONS) all.push({ text: `${text}(`, kind: "function", about });
		}
	}
	const wanted = typed.toLowerCase();
	const bare = (offer: Offer) => offer.text.replace(/^"/, "").toLowerCase();
	const list = [
		...all.filter((offer) => bare(offer).startsWith(wanted)),
		...all.filter((offer) => wanted.length > 1 && !bare(offer).startsWith(wanted) && bare(offer).includes(wanted)),
	].slice(0, MOST);
	// Nothing is left to complete.
	if (list.length === 0 || (list.length === 1 && list[0]?.text.toLowerCase() === wanted)) return null;
	return { from, to: cursor, list };
}

/** Tables that a statement names. */
function tablesIn(sql: string, names: readonly Names[]): Names[] {
	const words = new Set(
		tokens(sql)
			.filter((t) => t.kind === "name")
			.map((t) => sql.slice(t.from, t.to).toLowerCase()),
	);
	return names.filter((table) => words.has(table.name));
}

/** Tables by their names and by the names that FROM and JOIN give them. */
function aliases(sql: string, names: readonly Names[]): Map<string, Names> {
	const known = new Map(names.map((table) => [table.name, table]));
	const found = new Map(known);
	for (const match of sql.matchAll(/\b(?:from|join|,)\s*([A-Za-z_]\w*)\s+(?:as\s+)?([A-Za-z_]\w*)/gi)) {
		const table = known.get((match[1] ?? "").toLowerCase());
		if (table) found.set((match[2] ?? "").toLowerCase(), table);
	}
	return found;
}
