// Where SQL is written: a text field with its words in color behind it, offers of names, and errors where they are.

import { type KeyboardEvent, type ReactNode, type RefObject, useLayoutEffect, useRef, useState } from "react";
import { type Names, type Offers, offersAt } from "../../lib/complete";
import { type SqlError, tokens } from "../../lib/sql";

interface Props {
	value: string;
	onChange: (value: string) => void;
	onRun: () => void;
	names: readonly Names[];
	error: SqlError | null;
	field: RefObject<HTMLTextAreaElement | null>;
}

const LINE = 20;
const PADDING = 10;

export function Editor({ value, onChange, onRun, names, error, field }: Props) {
	const behind = useRef<HTMLPreElement>(null);
	const ruler = useRef<HTMLSpanElement>(null);
	const [offers, setOffers] = useState<Offers | null>(null);
	const [chosen, setChosen] = useState(0);
	// The cursor goes behind what was put in, once the text is there.
	const cursor = useRef<number | null>(null);
	useLayoutEffect(() => {
		if (cursor.current === null || !field.current) return;
		field.current.setSelectionRange(cursor.current, cursor.current);
		cursor.current = null;
	});

	const offer = (text: string, at: number, asked: boolean) => {
		setOffers(offersAt(text, at, names, asked));
		setChosen(0);
	};
	const take = (index: number) => {
		const picked = offers?.list[index];
		if (!offers || !picked) return;
		cursor.current = offers.from + picked.text.length;
		onChange(value.slice(0, offers.from) + picked.text + value.slice(offers.to));
		setOffers(null);
		field.current?.focus();
	};
	const indent = (target: HTMLTextAreaElement) => {
		const at = target.selectionStart;
		cursor.current = at + 2;
		onChange(`${value.slice(0, at)}  ${value.slice(target.selectionEnd)}`);
	};
	const onKey = (event: KeyboardEvent<HTMLTextAreaElement>) => {
		const target = event.currentTarget;
		if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
			setOffers(null);
			onRun();
		} else if (event.key === " " && event.ctrlKey) offer(value, target.selectionStart, true);
		else if (offers && event.key === "ArrowDown") setChosen((chosen + 1) % offers.list.length);
		else if (offers && event.key === "ArrowUp") setChosen((chosen + offers.list.length - 1) % offers.list.length);
		else if (offers && (event.key === "Tab" || event.key === "Enter") && !event.shiftKey) take(chosen);
		else if (offers && event.key === "Escape") setOffers(null);
		else if (event.key === "Escape") target.blur();
		else if (event.key === "Tab" && !event.shiftKey && !offers && target.selectionStart > 0) indent(target);
		else return;
		event.preventDefault();
		event.stopPropagation();
	};
	const place = offers ? placeOf(value, offers.from) : null;
	const wide = ruler.current ? ruler.current.getBoundingClientRect().width / 10 : 7.2;
	const left = place ? PADDING + place.column * wide - (field.current?.scrollLeft ?? 0) : 0;
	const top = place ? PADDING + (place.line + 1) * LINE - (field.current?.scrollTop ?? 0) : 0;
	return (
		<div className="sql-editor">
			<span className="sql-ruler" ref={ruler} aria-hidden="true">
				0000000000
			</span>
			<pre ref={behind} aria-hidden="true">
				{colored(value, error)}
				{"\n"}
			</pre>
			<textarea
				ref={field}
				aria-label="SQL"
				aria-invalid={error !== null}
				aria-describedby="sql-said"
				aria-autocomplete="list"
				aria-controls={offers ? "sql-offers" : undefined}
				aria-activedescendant={offers ? `sql-offer-${chosen}` : undefined}
				value={value}
				spellCheck={false}
				autoComplete="off"
				autoCapitalize="off"
				wrap="off"
				placeholder="SELECT …"
				onChange={(event) => {
					onChange(event.target.value);
					offer(event.target.value, event.target.selectionStart, false);
				}}
				onKeyDown={onKey}
				onClick={() => setOffers(null)}
				onBlur={() => setOffers(null)}
				onScroll={(event) => {
					if (!behind.current) return;
					behind.current.scrollTop = event.currentTarget.scrollTop;
					behind.current.scrollLeft = event.currentTarget.scrollLeft;
				}}
			/>
			{offers ? (
				<div className="sql-offers" id="sql-offers" role="listbox" aria-label="Names" style={{ left, top }}>
					{offers.list.map((item, i) => (
						<div
							key={`${item.kind} ${item.text}`}
							id={`sql-offer-${i}`}
							role="option"
							tabIndex={-1}
							aria-selected={i === chosen}
							className="sql-offer"
							onMouseDown={(event) => {
								event.preventDefault();
								take(i);
							}}
						>
							<span className={`mono sql-${item.kind}`}>{item.text}</span>
							<span className="faint cut">{item.about}</span>
						</div>
					))}
				</div>
			) : null}
		</div>
	);
}

function colored(value: string, error: SqlError | null): ReactNode[] {
	const made: ReactNode[] = [];
	for (const token of tokens(value)) {
		const wrong = error !== null && error.at >= token.from && error.at < token.to;
		const text = value.slice(token.from, token.to);
		made.push(
			<span key={token.from} className={`sql-${token.kind}${wrong ? " sql-wrong" : ""}`}>
				{text}
			</span>,
		);
	}
	// An error behind the last character.
	if (error !== null && error.at >= value.length) {
		made.push(
			<span key="end" className="sql-wrong">
				{" "}
			</span>,
		);
	}
	return made;
}

function placeOf(text: string, at: number): { line: number; column: number } {
	const before = text.slice(0, at);
	const line = before.split("\n").length - 1;
	return { line, column: before.length - (before.lastIndexOf("\n") + 1) };
}
