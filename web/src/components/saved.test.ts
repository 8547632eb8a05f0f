import { expect, it } from "vitest";
import { hasPlace } from "./saved";

it("has the views, calls and files that it was saved with", () => {
	const answers = ["/sessions/a/requests/12", "/sessions/a/offsets?file=7"].map((path) => ({
		path,
		kind: "application/json",
		data: "",
	}));
	const has = (place: Parameters<typeof hasPlace>[2]) =>
		hasPlace({ views: ["overview", "request", "file"], answers }, new Set(["7"]), place);
	expect(
		[{}, { view: "overview" }, { view: "request", rid: 12 }, { view: "file", params: { file: "7" } }].every(has),
	).toBe(true);
	expect(
		[{ view: "flame" }, { view: "request", rid: 2 }, { rid: 1 }, { view: "file", params: { file: "8" } }].some(has),
	).toBe(false);
});
