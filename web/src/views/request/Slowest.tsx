// The slowest calls, to begin with when none is selected.

import { Panel, Shown } from "../../components/panel";
import { CallTable } from "../../components/request/CallTable";
import { exact } from "../../lib/format";
import { useColumns } from "../../state/session";

const MOST = 20;
/** The table asks for its slowest rows in the same way, so a saved page has them. */
const ASKED = 256;
const COLUMNS = "ts_ns,dur_ns,comm,tid,syscall,errno,path,file_offset,bytes,flags,rid";

export function Slowest() {
	const answer = useColumns({
		path: "events",
		params: { sort: "-dur_ns", columns: COLUMNS, offset: 0, limit: ASKED },
	});
	return (
		<Panel
			title="Slowest calls"
			note={`the ${exact(MOST)} longest in this window: choose one to see where its time went`}
		>
			<Shown of={answer} height={200} empty={(data) => data.rows === 0} emptyTitle="No call in this window">
				{(data) => {
					const of = (name: string) => data.f64(name);
					const [t, dur, moved, rid] = [of("ts_ns"), of("dur_ns"), of("bytes"), of("rid")];
					const [syscall, errno, path] = [data.texts("syscall"), data.texts("errno"), data.texts("path")];
					const calls = Array.from({ length: Math.min(MOST, data.rows) }, (_, i) => ({
						rid: rid[i] ?? 0,
						t: t[i] ?? 0,
						dur: dur[i] ?? Number.NaN,
						syscall: syscall[i] ?? "",
						errno: errno[i] ?? null,
						bytes: moved[i] || 0,
						path: path[i] ?? null,
					}));
					return <CallTable calls={calls} since={0} />;
				}}
			</Shown>
		</Panel>
	);
}
