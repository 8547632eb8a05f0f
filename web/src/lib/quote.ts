// Quoting for SQL.

/** A text as SQL has it. */
export function literal(text: string): string {
	return `'${text.replaceAll("'", "''")}'`;
}
