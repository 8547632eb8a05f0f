// Arrow streams of any types.

import { type Table, tableFromIPC, type Vector } from "apache-arrow";
import type { Column, Frame } from "./ipc";

export function readAnyFrame(bytes: Uint8Array): Frame {
	return frameOf(tableFromIPC(bytes));
}

export function frameOf(table: Table): Frame {
	return {
		rows: table.numRows,
		fields: table.schema.fields.map(({ name, type }) => ({ name, type: type.toString() })),
		about: table.schema.metadata.get("fathom"),
		column: (name) => {
			const vector = table.getChild(name);
			return vector && columnOf(vector);
		},
	};
}

function columnOf(vector: Vector): Column {
	return {
		get: (row) => vector.get(row) as unknown,
		floats: () => {
			const array: unknown = vector.nullCount === 0 ? vector.toArray() : null;
			return array instanceof Float64Array ? array : null;
		},
		lists: () => null,
	};
}
