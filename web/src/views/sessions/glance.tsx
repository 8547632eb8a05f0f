// What a session was, in its row: the line of its time in calls, its worst finding, how long its syncs took.

import { useEffect, useRef, useState } from "react";
import { sessionPath } from "../../api/session";
import type { Glance } from "../../api/types";
import { Text } from "../../components/text";
import { colorOf } from "../../lib/color";
import { counted, duration, exact, percent } from "../../lib/format";
import { type Resource, useResource } from "../../state/resource";
import { client } from "../../state/server";
import { useTheme } from "../../state/theme";

const WIDTH = 168;
const HEIGHT = 30;

/** Asked for once the row is in sight: a directory may hold hundreds of sessions. */
export function useGlance(
	id: string,
	live: boolean,
): { row: React.RefObject<HTMLTableRowElement | null>; glance: Resource<Glance> } {
	const row = useRef<HTMLTableRowElement>(null);
	const [seen, setSeen] = useState(false);
	useEffect(() => {
		const element = row.current;
		if (!element || seen) return;
		const watch = new IntersectionObserver((entries) => {
			if (entries.some((entry) => entry.isIntersecting)) setSeen(true);
		});
		watch.observe(element);
		return () => watch.disconnect();
	}, [seen]);
	const path = sessionPath(id, "/glance");
	const glance = useResource(seen ? path : null, (signal) => client.json<Glance>(path, signal), live ? -1 : 0);
	return { row, glance };
}

export function Spark({ glance }: { glance: Resource<Glance> }) {
	const theme = useTheme();
	const canvas = useRef<HTMLCanvasElement>(null);
	const data = glance.data;
	useEffect(() => {
		const target = canvas.current;
		const context = target?.getContext("2d");
		if (!target || !context || !data) return;
		const ratio = window.devicePixelRatio || 1;
		target.width = WIDTH * ratio;
		target.height = HEIGHT * ratio;
		context.scale(ratio, ratio);
		const length = data.busy[0]?.busy_ns.length ?? 0;
		const sums = Array.from({ length }, (_, i) => data.busy.reduce((all, p) => all + (p.busy_ns[i] ?? 0), 0));
		const top = Math.max(...sums, 0);
		if (top === 0) return;
		const wide = WIDTH / length;
		sums.forEach((sum, i) => {
			const high = Math.sqrt(sum / top) * HEIGHT;
			let y = HEIGHT;
			for (const { purpose, busy_ns } of data.busy) {
				const part = sum > 0 ? ((busy_ns[i] ?? 0) / sum) * high : 0;
				context.fillStyle = colorOf("purpose", purpose, theme);
				context.fillRect(i * wide, y - part, Math.max(1, wide - 0.5), part);
				y -= part;
			}
		});
	}, [data, theme]);
	if (!data) return <span className="spark" aria-busy={glance.error === undefined} />;
	const total = data.busy.reduce((all, p) => all + p.time_ns, 0);
	const words = [...data.busy]
		.sort((a, b) => b.time_ns - a.time_ns)
		.filter((p) => p.time_ns > 0)
		.map((p) => `${p.purpose} ${duration(p.time_ns)} (${percent(p.time_ns / total)})`)
		.join(", ");
	return (
		<canvas
			ref={canvas}
			className="spark"
			role="img"
			aria-label={`Time in calls and page faults: ${words || "none"}`}
			title={`Time in calls and page faults over the recording: ${words || "none"}`}
		/>
	);
}

export function Worst({ glance }: { glance: Resource<Glance> }) {
	const data = glance.data;
	if (!data) return <span className="faint">{glance.error ? "–" : "…"}</span>;
	if (!data.diagnosed) return <span className="faint">open it for its findings</span>;
	if (!data.worst) return <span className="faint">none</span>;
	return (
		<span className="worst" title={`${counted(data.findings, "finding")}. The worst: ${data.worst.title}`}>
			<span className={`severity ${data.worst.severity}`}>{data.worst.severity}</span>{" "}
			<Text of={data.worst.title} className="cut" />
		</span>
	);
}

export function SyncTime({ glance }: { glance: Resource<Glance> }) {
	const sync = glance.data?.busy.find((p) => p.purpose === "sync");
	if (!glance.data) return <span className="faint">{glance.error ? "–" : "…"}</span>;
	if (!sync || sync.p99_ns === null) return <span className="faint">none</span>;
	return (
		<span title={`${exact(sync.calls)} syncs, the longest ${duration(sync.max_ns)}; p99 within a power of two`}>
			≈ {duration(sync.p99_ns)}
		</span>
	);
}
