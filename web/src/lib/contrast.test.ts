import { expect, it } from "vitest";
import { colorOf } from "./color";

const SURFACE = { dark: [18, 23, 30], light: [255, 255, 255] } as const;

function rgb(hsl: string): number[] {
	const [h = 0, s = 0, l = 0] = (hsl.match(/-?[\d.]+/g) ?? []).map(Number);
	const a = (s / 100) * Math.min(l / 100, 1 - l / 100);
	return [0, 8, 4].map((n) => {
		const k = (n + h / 30) % 12;
		return 255 * (l / 100 - a * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
	});
}

function luminance(color: readonly number[]): number {
	const [r = 0, g = 0, b = 0] = color.map((c) => {
		const v = c / 255;
		return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: readonly number[], b: readonly number[]): number {
	const [x, y] = [luminance(a), luminance(b)];
	return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

const STATES = ["running", "runnable", "queue", "device", "completion", "waiting", "unknown"];
const REASONS =
	"cpu disk page_cache file_system page_fault swap async_io lock futex file_lock pipe socket poll timer child".split(
		" ",
	);

it.each(["dark", "light"] as const)(
	"states of threads stand out from the %s ground as AA asks of graphics",
	(theme) => {
		const colors = [
			...STATES.map((key) => ["state", key] as const),
			...REASONS.map((key) => ["reason", key] as const),
			["series", "steal"] as const,
		];
		const weak = colors
			.map(([kind, key]) => [`${kind} ${key}`, contrast(rgb(colorOf(kind, key, theme)), SURFACE[theme])] as const)
			.filter(([, ratio]) => ratio < 3);
		expect(weak).toEqual([]);
	},
);
