import { expect, it } from "vitest";
import { placeOf, placeText } from "./directories";

function paths(directory: string, n: number, value: number): [string, number][] {
	return Array.from({ length: n }, (_, i) => [`${directory}/${i}`, value / n]);
}

// The same cases as in crates/query/src/together.rs.
it.each<[string, [string, number][]]>([
	["20 paths in /srv/a", paths("/srv/a", 20, 1)],
	["40 paths in /srv", [...paths("/srv/a", 20, 1), ...paths("/srv/b", 20, 1)]],
	["40 paths in /srv", [...paths("/srv/a", 20, 1), ...paths("/srv/ab", 20, 1)]],
	["40 paths in many directories", [...paths("", 20, 1), ...paths("/b", 20, 1)]],
	[
		"6\u202f002 paths, all but 2 in /usr/share/doc",
		[...paths("/usr/share/doc/a", 3000, 30), ...paths("/usr/share/doc/ä", 3000, 30), ...paths("/lib", 2, 1)],
	],
	["100 paths in many directories", [...paths("/srv/a", 89, 90), ...paths("/etc", 11, 10)]],
	["100 paths in many directories", [...paths("/srv/a", 90, 89), ...paths("/etc", 10, 11)]],
	["100 paths, all but 1 in /srv/a", [...paths("/srv/a", 99, 1), ["/srv/b", 0]]],
	["0 paths in many directories", []],
])("says %s", (text, of) => {
	expect(placeText(placeOf(of, 0.9))).toBe(text);
});
