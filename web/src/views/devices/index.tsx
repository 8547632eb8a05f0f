// The devices: how deep their queues were, how fast they answered, who filled them, and what the page cache spared them.

import type { Device } from "../../api/types";
import { Panel, Shown } from "../../components/panel";
import { Loading } from "../../components/states";
import { Text } from "../../components/text";
import { colorOf } from "../../lib/color";
import { bytes, count, counted, duration, exact, exactDuration, visible } from "../../lib/format";
import { useColumns, useJson, useSession } from "../../state/session";
import { useParam } from "../../state/store";
import { useTheme } from "../../state/theme";
import { Cache } from "./cache";
import { Depth, Latency, Users } from "./plots";
import "./style.css";

const BUCKETS = 200;

export default function Devices() {
	const { about } = useSession();
	const [param, setDevice] = useParam("device", "");
	const devices = useJson<Device[]>({ path: "devices" });
	const list = devices.data ?? [];
	// Devices made of others, as loop devices, do not tell when they begin: there is more to see of one that does.
	const first = list.find((d) => d.device_p50_ns !== null) ?? list[0];
	const device = (list.find((d) => d.name === param) ?? first)?.name ?? null;
	const block = about.layers.find((layer) => layer.name === "block");
	const unrecorded = block !== undefined && !block.recorded;
	return (
		<div className="devices">
			<Panel
				title="Devices"
				note="requests of all processes on this machine; with a filter, requests of the filtered calls"
			>
				<Shown
					of={devices}
					height={64}
					empty={(all) => all.length === 0}
					emptyTitle={unrecorded ? "Requests to devices were not recorded" : "No device had a request in this window"}
					emptyText={
						unrecorded ? (
							<>
								{block.reason ? `${visible(block.reason)} ` : ""}Record with <code>--layers block</code>, or{" "}
								<code>--layers all</code>.
							</>
						) : (
							"Data in the page cache needs no device. Widen the window (0) or remove a filter."
						)
					}
				>
					{(all) => <Table devices={all} chosen={device} choose={setDevice} />}
				</Shown>
			</Panel>
			{device !== null && list.length > 0 ? (
				<Charts device={device} />
			) : devices.data === undefined && !devices.error ? (
				<div className="devices-plots" style={{ minHeight: 500 }}>
					<Loading />
				</div>
			) : null}
			{/* Behind the devices, so that it does not move when they come. */}
			{devices.data !== undefined || devices.error ? <Cache /> : null}
		</div>
	);
}

/** One device over time. */
function Charts({ device }: { device: string }) {
	const atOnce = useColumns({ path: `devices/${encodeURIComponent(device)}/at_once`, pixels: BUCKETS });
	return (
		<>
			<div className="devices-plots">
				<Depth device={device} atOnce={atOnce} />
				<Latency device={device} />
			</div>
			<Users device={device} atOnce={atOnce} />
		</>
	);
}

interface TableProps {
	devices: readonly Device[];
	chosen: string | null;
	choose: (name: string) => void;
}

function Table({ devices, chosen, choose }: TableProps) {
	const theme = useTheme();
	const pair = (a: number | null, b: number | null) => `${duration(a ?? Number.NaN)} / ${duration(b ?? Number.NaN)}`;
	return (
		<table className="figures devices-table">
			<thead>
				<tr>
					<th>Device</th>
					<th className="number">Requests</th>
					<th className="number">Read</th>
					<th className="number">Written</th>
					<th className="number">Queue p50 / p99</th>
					<th className="number">Device p50 / p99</th>
					<th className="number">Longest</th>
					<th className="number">Depth mean / most</th>
					<th className="number">Failed</th>
				</tr>
			</thead>
			<tbody>
				{devices.map((d) => (
					<tr key={d.name} className="link" aria-selected={d.name === chosen} onClick={() => choose(d.name)}>
						<td>
							<span className="swatch" style={{ background: colorOf("device", d.name, theme) }} />{" "}
							<button type="button" className="plain-name" aria-pressed={d.name === chosen}>
								<Text of={d.name} className="mono" />
							</button>
						</td>
						<td className="number" title={`${exact(d.requests)}, of which recorded calls caused ${exact(d.recorded)}`}>
							{count(d.requests)}
						</td>
						<td className="number" title={counted(d.bytes_read, "byte")}>
							{bytes(d.bytes_read)}
						</td>
						<td className="number" title={counted(d.bytes_written, "byte")}>
							{bytes(d.bytes_written)}
						</td>
						<td className="number" title="From submission to the device's driver">
							{pair(d.queue_p50_ns, d.queue_p99_ns)}
						</td>
						<td className="number" title="From the driver to completion">
							{pair(d.device_p50_ns, d.device_p99_ns)}
						</td>
						<td className="number" title={exactDuration(d.device_max_ns ?? Number.NaN)}>
							{duration(d.device_max_ns ?? Number.NaN)}
						</td>
						<td className="number">
							{d.mean_depth === null ? "–" : `${d.mean_depth.toFixed(1)} / ${exact(d.max_depth ?? Number.NaN)}`}
						</td>
						<td className={d.errors > 0 ? "number danger" : "number faint"}>{count(d.errors)}</td>
					</tr>
				))}
			</tbody>
		</table>
	);
}
