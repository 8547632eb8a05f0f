// What spans of an application are called, on the screen and in addresses.

/** What spans have in common that count together. */
export interface Name {
	service: string | null;
	name: string | null;
	kind: string;
}

/** A name as addresses have it. */
export function nameKey({ service, name, kind }: Name): string {
	return JSON.stringify([service, name, kind]);
}

/** The name of an address; null when it is none. */
export function nameOf(key: string): Name | null {
	let value: unknown;
	try {
		value = JSON.parse(key);
	} catch {
		return null;
	}
	if (!Array.isArray(value) || value.length !== 3) return null;
	const [service, name, kind] = value;
	const isText = (part: unknown): part is string | null => part === null || typeof part === "string";
	return isText(service) && isText(name) && typeof kind === "string" ? { service, name, kind } : null;
}

/** What a span is called on the screen. */
export function nameText({ name }: Pick<Name, "name">): string {
	return name === null || name === "" ? "(no name)" : name;
}
