import { useMemo } from "react";
import { bytes, count, duration, exact, exactDuration, visible } from "../../lib/format";
import { archive } from "../../state/server";
import { useColumns, WHOLE } from "../../state/session";
import { Panel, Shown } from "../panel";
import { Text } from "../text";
import { CallTable } from "./CallTable";
import { chainOf, fileName, type LibraryCall, madeOf } from "./library";

/** The element of the panel. */
const PANEL = "library-call";

/** The library call that made a system call, and the other system calls that it made. */
export function OfLibrary({ id, rid }: { id: number; rid: number }) {
	const chain = useColumns({ path: "questions/library-call", params: { call: id }, ...WHOLE });
	const calls = useMemo(() => (chain.data ? chainOf(chain.data) : []), [chain.data]);
	const name = chain.stale ? undefined : calls[0]?.name;
	// A session that was exported as a page has no answer to this.
	if (archive && chain.error) return null;
	return (
		<div id={PANEL}>
			<Panel
				title={name === undefined ? "Library call" : `Library call: ${visible(name)}`}
				note="made this system call"
			>
				<Shown
					of={chain}
					height={120}
					empty={(data) => data.rows === 0}
					emptyTitle="Not stored"
					emptyText="The record of this library call was lost."
				>
					{() => (
						<>
							{calls[0] ? <Facts call={calls[0]} around={calls.slice(1)} /> : null}
							<MadeCalls id={id} rid={rid} />
						</>
					)}
				</Shown>
			</Panel>
		</div>
	);
}

/** The library call in a line; leads to its panel. */
export function LibraryLine({ id }: { id: number }) {
	const chain = useColumns({ path: "questions/library-call", params: { call: id }, ...WHOLE });
	const call = useMemo(() => (chain.data ? chainOf(chain.data)[0] : undefined), [chain.data]);
	if (!call || chain.stale) return <p className="library-line quiet" aria-busy={chain.loading} />;
	return (
		<p className="library-line quiet">
			Made by library call{" "}
			<button
				type="button"
				className="plain-name mono"
				title="Its duration and the other system calls that it made"
				onClick={() => document.getElementById(PANEL)?.scrollIntoView({ block: "start" })}
			>
				<Text of={call.name} />
			</button>{" "}
			of {visible(fileName(call.library))}
			{call.dur === null ? "" : `, which took ${duration(call.dur)}`}
		</p>
	);
}

function Facts({ call, around }: { call: LibraryCall; around: readonly LibraryCall[] }) {
	const facts: readonly (readonly [string, string])[] = [
		["library", call.library],
		["duration", call.dur === null ? "never returned" : exactDuration(call.dur)],
		["bytes requested", call.size === null ? "" : said(call.size)],
		["bytes transferred", call.bytes === null ? "" : said(call.bytes)],
		["return value", call.ret === null ? "" : `${call.ret}${call.failed ? ", failed" : ""}`],
		["file", call.path ?? ""],
		["called by", around.map(({ name, dur }) => `${name}${dur === null ? "" : ` (${duration(dur)})`}`).join(" ← ")],
	];
	return (
		<div className="padded">
			<dl className="facts">
				{facts.map(([name, value]) =>
					value === "" ? null : (
						<div key={name} className="library-fact">
							<dt>{name}</dt>
							<dd className="mono">
								<Text of={value} />
							</dd>
						</div>
					),
				)}
			</dl>
		</div>
	);
}

function said(size: number): string {
	return size < 1024 ? exact(size) : `${exact(size)} (${bytes(size)})`;
}

function MadeCalls({ id, rid }: { id: number; rid: number }) {
	const answer = useColumns({ path: "questions/library-call-made", params: { call: id }, ...WHOLE });
	const calls = useMemo(() => (answer.data ? madeOf(answer.data) : []), [answer.data]);
	const begin = calls[0]?.t ?? 0;
	const all = answer.data?.f64("calls")[0] ?? 0;
	const total = answer.data?.f64("total_ns")[0] ?? 0;
	return (
		<Shown of={answer} height={60} empty={(data) => data.rows === 0} emptyTitle="No system call is stored">
			{() => (
				<>
					<p className="library-made quiet">
						It made {all === 1 ? "only this system call" : `${count(all)} system calls`}, {duration(total)}
						{all > calls.length ? `; the first ${count(calls.length)}:` : all === 1 ? "." : ":"}
					</p>
					{all > 1 ? (
						<div className="library-calls">
							<CallTable calls={calls} since={begin} current={rid} />
						</div>
					) : null}
				</>
			)}
		</Shown>
	);
}

/** A function of a library, as tables have it. */
export function FunctionName({ name, library }: { name: string; library: string }) {
	return (
		<>
			<span className="mono">
				<Text of={name} />
			</span>{" "}
			<span className="faint" title={visible(library)}>
				{visible(fileName(library))}
			</span>
		</>
	);
}
