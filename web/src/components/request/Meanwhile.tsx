// What else happened while a request was under way: whose requests its device had, and which threads were in calls.

import { useRef, useState } from "react";
import type { Meanwhile as MeanwhileAnswer, MeanwhileDevice, Owner } from "../../api/types";
import { colorOf } from "../../lib/color";
import { bytes, count, duration, exact, visible } from "../../lib/format";
import { useJson } from "../../state/session";
import { token, useTheme } from "../../state/theme";
import { Link } from "../link";
import { Panel, Shown } from "../panel";
import { Path, Swatch, Text } from "../text";
import { Tip, TipRows } from "../tip";
import { useSize } from "../useSize";
import { areaOf, meanOf, ownerName, peakOf, summaryOf, unseenText } from "./owners";

const ROW = 34;
const HEAD = 6;
const RIGHT = 154;

/** Beside the request's own layers, on the same axis of time. */
export function Meanwhile({ rid, names }: { rid: number; names: number }) {
	const answer = useJson<MeanwhileAnswer>({ path: `requests/${rid}/meanwhile`, windowed: false, filtered: false });
	return (
		<Panel
			title="Meanwhile"
			note="what the device and other recorded threads did during this call"
			end={answer.data ? <Onward answer={answer.data} /> : undefined}
		>
			<Shown
				of={answer}
				height={120}
				empty={(data) => data.devices.length === 0 && data.threads.length === 0}
				emptyTitle="Nothing else was recorded during this call"
				emptyText="No device had requests, and no other recorded thread was in a call."
			>
				{(data) => (
					<>
						{data.devices.map((device) => (
							<Device key={device.name} device={device} answer={data} names={names} />
						))}
						{data.threads.length > 0 ? <Threads answer={data} /> : null}
					</>
				)}
			</Shown>
		</Panel>
	);
}

/** Views that show the same time at large. */
function Onward({ answer }: { answer: MeanwhileAnswer }) {
	const width = answer.to - answer.from;
	const window = { kind: "range", from: Math.max(0, answer.from - width / 4), to: answer.to + width / 4 } as const;
	const device = answer.devices[0]?.name;
	return (
		<>
			{device ? (
				<Link className="button" to={{ view: "devices", window, filter: {}, params: { device } }}>
					Show in Devices
				</Link>
			) : null}
			<Link className="button" to={{ view: "timeline", window, filter: {} }}>
				Show in Timeline
			</Link>
		</>
	);
}

interface DeviceProps {
	device: MeanwhileDevice;
	answer: MeanwhileAnswer;
	names: number;
}

function Device({ device, answer, names }: DeviceProps) {
	const theme = useTheme();
	const holder = useRef<HTMLDivElement>(null);
	const { width } = useSize(holder);
	const [hover, setHover] = useState<{ owner: Owner; place: number; x: number; y: number } | null>(null);
	const { owners } = device;
	const plot = Math.max(1, width - names - RIGHT);
	const peak = peakOf(owners);
	const height = HEAD + owners.length * ROW + 4;
	const places = Math.max(1, Math.ceil((answer.to - answer.from) / answer.bucket_ns));
	const summary = summaryOf(device, answer.own);
	const unseen = unseenText(device);
	return (
		<div className="meanwhile">
			<p className="meanwhile-said">
				<Swatch color={colorOf("device", device.name, theme)} /> {visible(summary)}{" "}
				<span className="faint">Solid: in the device; pale: waiting for it.</span>
				{unseen ? <span className="quiet"> {visible(unseen)}</span> : null}
			</p>
			<div ref={holder} className="waterfall" style={{ minHeight: height }}>
				{width > 0 ? (
					<svg width={width} height={height} fontSize="12" role="img" aria-label={`${device.name}: ${summary}`}>
						<title>Requests to {device.name} by process</title>
						{owners.map((owner, i) => {
							const top = HEAD + i * ROW;
							const tall = ROW - 8;
							const color = owner.own ? token("--accent") : colorOf("comm", owner.comm, theme);
							const area = (values: readonly (readonly number[])[]) =>
								areaOf(values, { left: names, width: plot, bottom: top + ROW - 4, tall }, peak, places);
							return (
								<g key={`${owner.pid} ${owner.own}`}>
									<rect x={8} y={top + 12} width={9} height={9} rx={2} fill={color} />
									<text x={23} y={top + 20} fill={token("--ink")} fontWeight={owner.own ? 600 : 400}>
										{cut(visible(ownerName(owner)), Math.floor((names - 34) / 6.6))}
									</text>
									<path d={area([owner.waiting, owner.in_device])} fill={color} opacity={0.38} />
									<path d={area([owner.in_device])} fill={color} />
									<line x1={names} x2={names + plot} y1={top + ROW - 4} y2={top + ROW - 4} stroke={token("--grid")} />
									<text x={width - 76} y={top + 20} fill={token("--ink")} textAnchor="end">
										{count(owner.requests)}
									</text>
									<text x={width - 10} y={top + 20} fill={token("--ink-3")} textAnchor="end">
										{bytes(owner.bytes)}
									</text>
									<rect
										x={names}
										y={top}
										width={plot}
										height={ROW}
										fill="transparent"
										onPointerMove={(event) => {
											const box = event.currentTarget.getBoundingClientRect();
											const place = Math.min(
												places - 1,
												Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * places)),
											);
											setHover({ owner, place, x: event.clientX, y: event.clientY });
										}}
										onPointerLeave={() => setHover(null)}
									/>
								</g>
							);
						})}
					</svg>
				) : null}
				{hover ? (
					<Tip x={hover.x} y={hover.y}>
						<div className="head">
							<b>{visible(ownerName(hover.owner))}</b>{" "}
							<span className="faint">{duration(hover.place * answer.bucket_ns)} after the call began</span>
						</div>
						<TipRows
							rows={[
								{ label: "waiting", value: one(hover.owner.waiting[hover.place]) },
								{ label: "in the device", value: one(hover.owner.in_device[hover.place]) },
								{ label: "mean over the call", value: one(meanOf(hover.owner)) },
								{ label: "requests", value: `${exact(hover.owner.requests)}, ${bytes(hover.owner.bytes)}` },
							]}
						/>
					</Tip>
				) : null}
			</div>
		</div>
	);
}

function one(value: number | undefined): string {
	return exact(Math.round((value ?? 0) * 10) / 10);
}

function cut(text: string, most: number): string {
	return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}

function Threads({ answer }: { answer: MeanwhileAnswer }) {
	const theme = useTheme();
	return (
		<table className="figures fitted">
			<thead>
				<tr>
					<th>Other threads in calls</th>
					<th className="number">Calls</th>
					<th className="number">At once</th>
					<th>Longest overlap</th>
					<th className="number">Start</th>
					<th className="number">Duration</th>
					<th>Path</th>
				</tr>
			</thead>
			<tbody>
				{answer.threads.map((thread) => (
					<tr key={thread.tid}>
						<td>
							<Text of={thread.comm} /> <span className="faint">{thread.tid}</span>
						</td>
						<td className="number">{count(thread.calls)}</td>
						<td className="number" title="Calls at once, mean over this call">
							{one(thread.time_ns / (answer.to - answer.from))}
						</td>
						<td>
							<Swatch color={colorOf("syscall", thread.syscall, theme)} />{" "}
							<Link to={{ view: "request", rid: thread.rid }}>{visible(thread.syscall)}</Link>
						</td>
						<td className="number quiet">
							{thread.t < answer.from ? "−" : "+"}
							{duration(Math.abs(thread.t - answer.from))}
						</td>
						<td className="number">{duration(thread.dur)}</td>
						<td>
							<Path of={thread.path} />
						</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}
