import { expect, it } from "vitest";
import { sharesOf } from "./layers";

it("has each layer's share of a call, from the call down to the device", () => {
	const columns: Record<string, number[]> = { rid: [7, 7, 7, 9], dur: [100, 100, 100, 50], self_ns: [20, 70, 10, 50] };
	const shares = sharesOf({
		rows: 4,
		f64: (name) => Float64Array.from(columns[name] ?? []),
		codes: () => ({ codes: Int32Array.of(0, 1, 2, 2), values: ["sched", "device", "syscall"] }),
	});
	expect(shares.get(7)).toEqual([
		{ layer: "syscall", share: 0.1 },
		{ layer: "device", share: 0.7 },
		{ layer: "sched", share: 0.2 },
	]);
	expect(shares.get(9)).toEqual([{ layer: "syscall", share: 1 }]);
});
