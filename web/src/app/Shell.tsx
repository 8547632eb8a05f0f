// What surrounds every view: session, tabs, loss, filter, window, and what happens when something fails.

import type { ComponentType } from "react";
import { Component, type ReactNode, useEffect, useMemo, useState } from "react";
import { asApiError } from "../api/client";
import { Link } from "../components/link";
import { Empty, ErrorState, Loading, sentence } from "../components/states";
import { count, counted, duration, exact, exactTime, time, visible } from "../lib/format";
import { panSpan, zoomSpan } from "../lib/scale";
import { hasRows } from "../lib/tables";
import { has, may, useAccess } from "../state/access";
import { useComing, useShortcut } from "../state/keys";
import { archive, client, useConnection } from "../state/server";
import { type Opening, SessionProvider, useMaybeSession, useSession, useShown } from "../state/session";
import { store, usePage, useRestedPage } from "../state/store";
import { switchTheme, useTheme } from "../state/theme";
import { tokenOf } from "../state/url";
import { VIEWS, viewOf } from "../views";
import type { View } from "../views/view";
import { FilterBar } from "./FilterBar";
import { HelpSheet } from "./HelpSheet";
import { Minimap } from "./Minimap";
import { Recording } from "./Recording";
import { Share } from "./Share";

const components = new Map<string, ComponentType>();

/** Notes the component of a view whose code is there already. */
export function keepView(id: string, component: ComponentType): void {
	components.set(id, component);
}

/** The component of a view; null until its code is there. Without React's which holds back what is ready. */
function useView(view: View | undefined): { component: ComponentType | null; error: unknown } {
	const [, loaded] = useState(0);
	const [error, setError] = useState<unknown>(null);
	useEffect(() => {
		if (!view || components.has(view.id)) return;
		let wanted = true;
		view.load().then(
			({ default: component }) => {
				components.set(view.id, component);
				if (wanted) loaded((n) => n + 1);
			},
			(problem: unknown) => {
				if (wanted) setError(problem);
			},
		);
		return () => {
			wanted = false;
			setError(null);
		};
	}, [view]);
	return { component: (view && components.get(view.id)) ?? null, error };
}

export function Shell() {
	const page = useRestedPage();
	const connection = useConnection();
	const view = viewOf(page.view);
	useEffect(() => {
		document.title = page.session ? `${page.session} · ${view?.title ?? ""} · fathom` : "fathom";
	}, [page.session, view]);
	// The view's code comes while the session is being opened.
	const code = useView(view);
	const refused = connection === "refused";
	if (refused && !client.wasAccepted()) return <TokenSheet />;
	const frame = (opening: Opening | null) => (
		<div className="shell">
			<Top view={view} />
			{view?.scope !== "session" ? (
				<div />
			) : opening?.session ? (
				<Strip />
			) : (
				// Its place is kept while the session is being opened.
				<div className={opening && !opening.error ? "strip waiting" : undefined} />
			)}
			<main className={view?.full ? "main full" : "main"} id="main">
				<h1 className="said">{view ? heading(view, opening) : "fathom"}</h1>
				<Content view={view} opening={opening} code={code} />
			</main>
			<Banner />
			<HelpSheet />
			{refused ? (
				<div className="sheet-back">
					<TokenSheet anew />
				</div>
			) : null}
		</div>
	);
	return page.session === null ? frame(null) : <SessionProvider key={page.session} id={page.session} render={frame} />;
}

/** What the page is about, for who goes from heading to heading. */
function heading(view: View, opening: Opening | null): string {
	return opening?.session && view.scope === "session" ? `${view.title} of ${visible(opening.session.id)}` : view.title;
}

interface ContentProps {
	view: View | undefined;
	opening: Opening | null;
	code: { component: ComponentType | null; error: unknown };
}

function Content({ view, opening, code }: ContentProps) {
	const access = useAccess();
	if (!view) {
		return (
			<div className="state error">
				<h2>View not found</h2>
				<p>
					<Link to={{ view: "sessions", session: null }}>Go to sessions</Link>
				</p>
			</div>
		);
	}
	if (view.needs && !has(access, view.needs)) {
		return (
			<Empty title={`${view.title} needs role ${view.needs}`}>
				Your role is {access?.role}: ask the operator of this server for more.
			</Empty>
		);
	}
	return <Arrived view={view} opening={opening} code={code} />;
}

function Arrived({ view, opening, code }: ContentProps & { view: View }) {
	// A failure is an answer: nothing is to come then.
	const waits = view.scope === "session" && opening !== null && !opening.session && !opening.error;
	useComing(waits || (!code.component && code.error === null));
	if (view.scope === "session") {
		if (opening?.error && !opening.session) {
			return (
				<ErrorState error={opening.error} what={opening.error.status === 404 ? "session not found" : undefined}>
					<Link className="button" to={{ view: "sessions", session: null }}>
						Go to sessions
					</Link>
				</ErrorState>
			);
		}
		if (!opening) {
			return (
				<div className="state">
					<h2>No session chosen</h2>
					<p>
						<Link to={{ view: "sessions", session: null }}>Go to sessions</Link>
					</p>
				</div>
			);
		}
		if (!opening.session) return <Loading />;
	}
	const Shown = code.component;
	// A newer fathom has other files: the page must be loaded anew.
	if (code.error !== null) return <ErrorState error={asApiError(code.error)} />;
	if (!Shown) return <Loading />;
	return (
		<Boundary key={view.id}>
			<Shown />
		</Boundary>
	);
}

/** A defect in one view leaves the others usable. */
class Boundary extends Component<{ children: ReactNode }, { error: unknown }> {
	override state: { error: unknown } = { error: null };

	static getDerivedStateFromError(error: unknown) {
		return { error };
	}

	override render() {
		return this.state.error === null ? this.props.children : <ErrorState error={asApiError(this.state.error)} />;
	}
}

function Top({ view }: { view: View | undefined }) {
	const page = useRestedPage();
	const session = useMaybeSession();
	const theme = useTheme();
	const access = useAccess();
	const tabs = VIEWS.filter(
		(v) =>
			!v.hidden &&
			has(access, v.needs ?? "look") &&
			v.scope === (page.session ? "session" : "all") &&
			(!archive || archive.views.includes(v.id)) &&
			(!v.table || v.id === view?.id || (session !== null && hasRows(session.about, v.table))),
	);
	const open = (index: number) => {
		const wanted = tabs[index];
		if (wanted) store.go({ view: wanted.id });
	};
	useShortcut(
		["1", "2", "3", "4", "5", "6", "7", "8", "9"],
		"The views, in the order of their tabs",
		"Everywhere",
		(event) => open(Number(event.key) - 1),
	);
	// There are more views of a session than digits that mean one.
	useShortcut(["q"], "SQL", "Everywhere", () => may("query") && store.go({ view: "sql" }));
	useShortcut(["p"], "Panels", "Everywhere", () => may("query") && store.go({ view: "panels" }));
	useShortcut(["t"], "Dark or light", "Everywhere", switchTheme);
	useShortcut(["Backspace"], "Undo: zoom, filter, selection (also the browser's back)", "Everywhere", () =>
		window.history.back(),
	);
	const command = session ? (session.about.command ?? session.about.target) : "";
	return (
		<header className="top">
			<Link className="brand" to={{ view: "sessions", session: null }} title="All sessions">
				<Icon />
				fathom
			</Link>
			{page.session ? (
				<Link
					className="top-session"
					to={{ view: "sessions", session: null }}
					title={`${visible(page.session)}: ${visible(command)}`}
				>
					<b className="cut">{visible(page.session)}</b>
				</Link>
			) : null}
			<nav className="tabs" aria-label="Views">
				{tabs.map((tab) => (
					<Link key={tab.id} className="tab" to={{ view: tab.id }} title={tab.about} current={tab.id === view?.id}>
						<span data-text={tab.title}>{tab.title}</span>
					</Link>
				))}
			</nav>
			<div className="top-end">
				{session ? <Loss /> : page.session ? <span className="badge waiting">0 lost</span> : null}
				{session?.live && !archive ? (
					<>
						<LiveBadge />
						<Recording />
					</>
				) : null}
				<Share />
				<button
					type="button"
					className="button plain"
					onClick={switchTheme}
					title="Dark or light (t)"
					aria-label="Dark or light"
				>
					{theme === "dark" ? "☾" : "☀"}
				</button>
				<button
					type="button"
					className="button plain"
					title="Keys (?)"
					aria-label="Keys"
					onClick={() => window.dispatchEvent(new KeyboardEvent("keydown", { key: "?" }))}
				>
					?
				</button>
			</div>
		</header>
	);
}

/** As `icon.svg`, which would be another request. */
function Icon() {
	return (
		<svg viewBox="0 0 32 32" aria-hidden="true">
			<rect width="32" height="32" rx="7" fill="#12324a" />
			<path d="M6 10h20M6 16h14M6 22h8" stroke="#56b4e9" strokeWidth="3" strokeLinecap="round" />
			<path
				d="M24 15v9m-4-4 4 4 4-4"
				stroke="#e69f00"
				strokeWidth="2.6"
				fill="none"
				strokeLinecap="round"
				strokeLinejoin="round"
			/>
		</svg>
	);
}

/** Whether anything is missing from what is shown: always in sight. */
function Loss() {
	const { seen, stored, lost } = useSession();
	const title = `${counted(seen, "call")} seen, ${exact(stored)} stored, ${exact(lost)} lost`;
	if (lost === 0) {
		return (
			<span className="badge" title={title}>
				0 lost
			</span>
		);
	}
	return (
		<span className="badge lost" title={`${title}. Sums stay exact; single calls are missing.`}>
			{count(lost)} of {count(seen)} calls lost
		</span>
	);
}

const FOLLOW_NS = 10e9;

function LiveBadge() {
	const { window } = useRestedPage();
	const following = window.kind !== "range";
	const follow = () => store.go({ window: following ? { kind: "all" } : { kind: "last", span: FOLLOW_NS } });
	useShortcut(["f"], "Follow a running recording", "Time", follow);
	return (
		<button
			type="button"
			className={following ? "badge live" : "badge"}
			title={following ? "Recording; the newest is shown" : "Recording; show the newest (f)"}
			onClick={follow}
		>
			<span className="dot" />
			{following ? "live" : "recording: follow"}
		</button>
	);
}

/** Filter, window, and the whole session in one strip. */
function Strip() {
	return (
		<section className="strip" aria-label="Filter and window">
			<div className="strip-row">
				<FilterBar />
				<WindowText />
			</div>
			<Minimap />
		</section>
	);
}

const ZOOM = 0.6;

function WindowText() {
	const page = usePage();
	const { bounds, live } = useSession();
	const { span } = useShown();
	const width = span.to - span.from;
	const move = (next: { from: number; to: number }) => store.move({ kind: "range", ...next });
	const center = (span.from + span.to) / 2;
	useShortcut(["w", "+"], "Zoom in", "Time", () => move(zoomSpan(span, center, ZOOM, bounds)));
	useShortcut(["s", "-"], "Zoom out", "Time", () => move(zoomSpan(span, center, 1 / ZOOM, bounds)));
	useShortcut(["a", "ArrowLeft"], "Earlier", "Time", () => move(panSpan(span, -0.2, bounds)));
	useShortcut(["d", "ArrowRight"], "Later", "Time", () => move(panSpan(span, 0.2, bounds)));
	useShortcut(["0"], "The whole session", "Time", () => store.go({ window: { kind: "all" } }));
	return (
		<div className="window-text" title={`${exactTime(span.from)} to ${exactTime(span.to)} of ${exactTime(bounds.to)}`}>
			<span>
				{page.window.kind === "last" ? "last " : null}
				<b>{duration(width)}</b>
			</span>
			<span className="faint">
				{time(span.from, width / 1000)} – {time(span.to, width / 1000)}
			</span>
			{live ? <FollowSelect /> : null}
			<button
				type="button"
				className="button"
				disabled={page.window.kind === "all"}
				title="The whole session (0)"
				onClick={() => store.go({ window: { kind: "all" } })}
			>
				All
			</button>
		</div>
	);
}

const FOLLOWED: readonly [string, number][] = [
	["1 s", 1e9],
	["10 s", 10e9],
	["1 min", 60e9],
	["10 min", 600e9],
];

function FollowSelect() {
	const { window } = usePage();
	return (
		<select
			className="field"
			aria-label="Follow the newest"
			value={window.kind === "last" ? String(window.span) : window.kind}
			onChange={(event) => {
				const value = event.target.value;
				store.go({ window: value === "all" ? { kind: "all" } : { kind: "last", span: Number(value) } });
			}}
		>
			<option value="all">everything so far</option>
			{window.kind === "range" ? <option value="range">fixed</option> : null}
			{window.kind === "last" && !FOLLOWED.some(([, span]) => span === window.span) ? (
				<option value={window.span}>last {duration(window.span)}</option>
			) : null}
			{FOLLOWED.map(([name, span]) => (
				<option key={name} value={span}>
					last {name}
				</option>
			))}
		</select>
	);
}

/** The server is gone: said quietly, as the page goes on by itself when it is back. */
function Banner() {
	const connection = useConnection();
	const [was, setWas] = useState(false);
	useEffect(() => {
		if (connection === "down") {
			setWas(true);
			return;
		}
		const timer = setTimeout(() => setWas(false), 2500);
		return () => clearTimeout(timer);
	}, [connection]);
	if (connection === "down") {
		return (
			<div className="banner" role="status">
				<span className="dot" />
				The server does not answer. The page continues when the server is back. If you restart fathom, open the address
				that it prints.
			</div>
		);
	}
	return was ? (
		<div className="banner" role="status">
			The server is back.
		</div>
	) : null;
}

/** The token was refused, or there is none. `anew`: another one was taken before, so the server was started again. */
function TokenSheet({ anew = false }: { anew?: boolean }) {
	const [text, setText] = useState("");
	const token = useMemo(() => {
		const hash = text.indexOf("#");
		return (hash >= 0 ? tokenOf(text.slice(hash)) : text.trim()) ?? "";
	}, [text]);
	return (
		<div className={anew ? "state refused sheet" : "state refused"} role="alert">
			<h2>
				{anew ? "fathom was restarted: this page needs its new access token" : "This link needs its access token"}
			</h2>
			<p>
				{client.getAdvice() === "" ? null : `${sentence(client.getAdvice())}. `}
				An address or a token can also be pasted here.
				{anew
					? " One tab of this browser is enough for all: this page continues with the same window and filter."
					: null}
			</p>
			<form
				className="token-form"
				onSubmit={(event) => {
					event.preventDefault();
					if (token) client.setToken(token);
				}}
			>
				<input
					className="field mono"
					aria-label="Address or token"
					placeholder="http://127.0.0.1:…/#token=…"
					spellCheck={false}
					autoComplete="off"
					value={text}
					onChange={(event) => setText(event.target.value)}
				/>
				<button type="submit" className="button primary" disabled={token === ""}>
					Open
				</button>
			</form>
		</div>
	);
}
