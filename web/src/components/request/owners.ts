// Whose requests a device had during a call, in words and as shapes.

import type { MeanwhileDevice, Owner } from "../../api/types";
import { bytes, exact } from "../../lib/format";

/** How a process is named: by the thread that submitted the most, and its id. */
export function ownerName(owner: Pick<Owner, "comm" | "pid" | "own">): string {
	if (owner.own) return "this call";
	if (owner.pid === null) return owner.comm === null ? "others" : owner.comm;
	return `${owner.comm ?? "process"} ${owner.pid}`;
}

/** Requests that waited or were in the device at once, mean over the call. */
export function meanOf(owner: Pick<Owner, "waiting" | "in_device">): number {
	let sum = 0;
	for (let i = 0; i < owner.in_device.length; i += 1) sum += (owner.waiting[i] ?? 0) + (owner.in_device[i] ?? 0);
	return owner.in_device.length > 0 ? sum / owner.in_device.length : 0;
}

/** The most requests that any process had at once: one scale for all rows. */
export function peakOf(owners: readonly Pick<Owner, "waiting" | "in_device">[]): number {
	let peak = 1;
	for (const owner of owners) {
		for (let i = 0; i < owner.in_device.length; i += 1) {
			peak = Math.max(peak, (owner.waiting[i] ?? 0) + (owner.in_device[i] ?? 0));
		}
	}
	return peak;
}

/** Processes of one program as one: a backup may be many of them. */
function byProgram(owners: readonly Owner[]): Owner[] {
	const programs = new Map<string | null, Owner>();
	for (const owner of owners) {
		const known = programs.get(owner.comm);
		const add = (a: readonly number[], b: readonly number[]) => a.map((n, i) => n + (b[i] ?? 0));
		programs.set(
			owner.comm,
			known
				? {
						...known,
						pid: null,
						requests: known.requests + owner.requests,
						bytes: known.bytes + owner.bytes,
						waiting: add(known.waiting, owner.waiting),
						in_device: add(known.in_device, owner.in_device),
					}
				: owner,
		);
	}
	return [...programs.values()];
}

/** Who kept the device busy, in a sentence. */
export function summaryOf(device: MeanwhileDevice, own: boolean): string {
	const others = byProgram(device.owners.filter((owner) => !owner.own && owner.requests > 0));
	// The rest, and unknown ones, are no one's neighbor while there is one with a name.
	const named = others.filter((owner) => owner.comm !== null);
	const first = (named.length > 0 ? named : others).reduce<Owner | null>(
		(a, b) => (a === null || meanOf(b) > meanOf(a) ? b : a),
		null,
	);
	const mine = device.owners.find((owner) => owner.own);
	const share =
		mine === undefined && own
			? `No completion of this call's requests on ${device.name} was seen`
			: mine
				? `This call had ${requests(mine)} on ${device.name}`
				: `This call had no request on ${device.name}`;
	if (first === null) return `${share}; no other process ${device.unseen > 0 ? "is known to have used" : "used"} it.`;
	const mean = meanOf(first);
	const held = mean >= 0.05 ? `, ${exact(Math.round(mean * 10) / 10)} at once on average` : "";
	return `${own ? share : `${share} that was recorded`}; ${ownerName(first)} had ${requests(first)}${held}.`;
}

/** What of a device is in no row: null when nothing is. */
export function unseenText(device: Pick<MeanwhileDevice, "unseen" | "name">): string | null {
	if (device.unseen === 0) return null;
	const what = device.unseen === 1 ? "1 request" : `${exact(device.unseen)} requests`;
	return `Not counted: ${what} to ${device.name} without a recorded completion, queued before this call ended.`;
}

function requests(owner: Pick<Owner, "requests" | "bytes">): string {
	return `${exact(owner.requests)} ${owner.requests === 1 ? "request" : "requests"} (${bytes(owner.bytes)})`;
}

interface Box {
	left: number;
	width: number;
	bottom: number;
	tall: number;
}

/** The outline of a sum of series as steps, closed at the bottom: the data of an SVG path. */
export function areaOf(series: readonly (readonly number[])[], box: Box, peak: number, places: number): string {
	const step = box.width / places;
	const parts: string[] = [];
	let open = false;
	for (let i = 0; i < places; i += 1) {
		const sum = series.reduce((a, values) => a + (values[i] ?? 0), 0);
		const left = (box.left + i * step).toFixed(1);
		if (sum <= 0) {
			if (open) parts.push(`L${left} ${box.bottom}Z`);
			open = false;
			continue;
		}
		// What is there must be seen.
		const top = (box.bottom - Math.max(1.5, (sum / peak) * box.tall)).toFixed(1);
		if (!open) parts.push(`M${left} ${box.bottom}`);
		parts.push(`L${left} ${top}L${(box.left + (i + 1) * step).toFixed(1)} ${top}`);
		open = true;
	}
	if (open) parts.push(`L${(box.left + box.width).toFixed(1)} ${box.bottom}Z`);
	return parts.join("");
}
