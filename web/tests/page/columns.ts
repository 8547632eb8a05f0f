import { tableFromIPC } from "apache-arrow";

/** An Arrow answer, as far as the tests look into it. */
export function decode(bytes: Uint8Array): { rows: number; first: (name: string) => number } {
	const table = tableFromIPC(bytes);
	return { rows: table.numRows, first: (name) => Number(table.getChild(name)?.get(0)) };
}
