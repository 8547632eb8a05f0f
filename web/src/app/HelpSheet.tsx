import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { Purpose } from "../api/calls";
import { LAYERS } from "../api/layers";
import { Swatch } from "../components/text";
import { colorOf, ERROR } from "../lib/color";
import { type Shortcut, useShortcut, useShortcuts } from "../state/keys";
import { useTheme } from "../state/theme";

const NAMES: Readonly<Record<string, string>> = {
	ArrowLeft: "←",
	ArrowRight: "→",
	ArrowUp: "↑",
	ArrowDown: "↓",
	Escape: "Esc",
	Backspace: "⌫",
};

const MOUSE: readonly (readonly [string, string])[] = [
	["Drag on a plot", "Zoom to that time; a box in the latency: how its calls differ from the others"],
	["Click a row", "Where it leads; with Alt: exclude it"],
	["Double click", "On the strip below the filter: the whole session"],
	["Wheel", "In the timeline: zoom, or scroll where lanes do not fit; with Ctrl always zoom, with Shift move"],
	["Drag in the timeline", "Move; on the ruler or with Shift: zoom to that time"],
	["Click in a legend", "Filter by it; with Alt: exclude it"],
];

const PURPOSES: readonly (readonly [Purpose, string])[] = [
	["read", "Moves bytes out of files"],
	["write", "Moves bytes into files"],
	["sync", "Makes data durable"],
	["metadata", "Opens, looks up, describes, renames, removes"],
	["other", "Everything else, such as mapping memory and waiting for operations"],
];

/** All keys that work where the reader is. */
export function HelpSheet() {
	const [open, setOpen] = useState(false);
	useShortcut(["?"], "This sheet", "Everywhere", () => setOpen((was) => !was));
	return open ? <Sheet close={() => setOpen(false)} /> : null;
}

function Sheet({ close }: { close: () => void }) {
	const shortcuts = useShortcuts();
	const theme = useTheme();
	const sheet = useRef<HTMLDivElement>(null);
	useShortcut(["Escape"], "Close", "Everywhere", close);
	useEffect(() => {
		const before = document.activeElement;
		sheet.current?.focus();
		return () => {
			if (before instanceof HTMLElement) before.focus();
		};
	}, []);
	const groups = new Map<string, Shortcut[]>();
	for (const shortcut of shortcuts) groups.set(shortcut.group, [...(groups.get(shortcut.group) ?? []), shortcut]);
	return (
		// biome-ignore lint/a11y/noStaticElementInteractions: a click beside the sheet closes it; Escape does as well
		// biome-ignore lint/a11y/useKeyWithClickEvents: Escape is the key
		<div className="sheet-back" onClick={(event) => event.target === event.currentTarget && close()}>
			<div
				className="sheet"
				role="dialog"
				aria-modal="true"
				aria-label="Keys"
				tabIndex={-1}
				ref={sheet}
				onKeyDown={stay}
			>
				<h2>Keys</h2>
				<button type="button" className="button plain sheet-close" aria-label="Close" onClick={close}>
					×
				</button>
				<div className="sheet-groups">
					{[...groups].map(([name, list]) => (
						<section key={name}>
							<h3>{name}</h3>
							<dl>
								{list.map((shortcut) => (
									<Row key={shortcut.what} keys={shortcut.keys} what={shortcut.what} />
								))}
							</dl>
						</section>
					))}
					<section>
						<h3>Mouse</h3>
						<dl>
							{MOUSE.map(([how, what]) => (
								<div className="mouse" key={how}>
									<dt>{how}</dt>
									<dd>{what}</dd>
								</div>
							))}
						</dl>
					</section>
					<section>
						<h3>Colors of calls</h3>
						<dl>
							{PURPOSES.map(([purpose, meaning]) => (
								<div className="mouse" key={purpose}>
									<dt>
										<Swatch color={colorOf("purpose", purpose, theme)} /> {purpose}
									</dt>
									<dd>{meaning}</dd>
								</div>
							))}
							<div className="mouse">
								<dt>
									<Swatch color={ERROR[theme]} /> red
								</dt>
								<dd>Failed calls, and nothing else. ENOENT of a look-up is an answer, not a failure</dd>
							</div>
						</dl>
					</section>
					<section>
						<h3>Layers</h3>
						<dl>
							{LAYERS.map(({ name, meaning }) => (
								<div className="mouse" key={name}>
									<dt>
										<Swatch color={colorOf("layer", name, theme)} /> {name}
									</dt>
									<dd>{meaning}</dd>
								</div>
							))}
						</dl>
					</section>
				</div>
			</div>
		</div>
	);
}

/** The focus goes to the one button of the sheet, and not to what lies below the sheet. */
function stay(event: KeyboardEvent<HTMLDivElement>): void {
	if (event.key !== "Tab") return;
	event.preventDefault();
	event.currentTarget.querySelector("button")?.focus();
}

function Row({ keys, what }: { keys: readonly string[]; what: string }) {
	const shown = keys.length > 4 ? [keys[0], "…", keys.at(-1)] : keys;
	return (
		<>
			<dt>{shown.map((key) => (key === "…" ? "…" : <kbd key={key}>{NAMES[key ?? ""] ?? key}</kbd>))}</dt>
			<dd>{what}</dd>
		</>
	);
}
