/** Offers a file for download. */
export function saveBlob(blob: Blob, name: string): void {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(blob);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const LONGEST = 80;

/** The name of a file with a part of what is shown of a session, of signs that every file system takes: `redis-rates`. */
export function savedName(session: string | null, part: string): string {
	const name = session === null ? part : `${session.replace(/\.fathom$/, "")}-${part}`;
	return name.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, LONGEST) || "fathom";
}
