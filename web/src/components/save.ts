/** Offers a file for download. */
export function saveBlob(blob: Blob, name: string): void {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(blob);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const LONGEST = 80;

/**
 * The name of a file for one part of a session's page: `redis-rates`. It has only characters that every file system takes. A
 * long session name is cut, so that parts differ.
 */
export function savedName(session: string | null, part: string): string {
	const safe = (text: string) => text.replace(/[^A-Za-z0-9._-]+/g, "-");
	const end = safe(session === null ? part : `-${part}`).slice(0, LONGEST);
	const beginning = safe(session?.replace(/\.fathom$/, "") ?? "").slice(0, LONGEST - end.length);
	return `${beginning}${end}` || "fathom";
}
