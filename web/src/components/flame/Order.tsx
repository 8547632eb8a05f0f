// The order of a flame graph's levels: each can be moved or left out.

import { LEVELS, type Level } from "../../lib/flame";
import { LEVEL_TITLES } from "./Flame";

/** The levels that a text names, all of them when it names none. */
export function orderOf(text: string): Level[] {
	const named = text.split(",").filter((name): name is Level => (LEVELS as readonly string[]).includes(name));
	return named.length > 0 ? [...new Set(named)] : [...LEVELS];
}

interface Props {
	order: readonly Level[];
	setOrder: (order: readonly Level[]) => void;
}

export function Order({ order, setOrder }: Props) {
	const move = (at: number) => {
		const next = [...order];
		const [level] = next.splice(at, 1);
		if (level) next.splice(at - 1, 0, level);
		setOrder(next);
	};
	const left = LEVELS.filter((level) => !order.includes(level));
	return (
		<fieldset className="flame-order" aria-label="Levels">
			{order.map((level, i) => (
				<span className="flame-level" key={level}>
					<button
						type="button"
						disabled={i === 0}
						title={`Move ${LEVEL_TITLES[level]} up a level`}
						aria-label={`Move ${LEVEL_TITLES[level]} up a level`}
						onClick={() => move(i)}
					>
						‹
					</button>
					{LEVEL_TITLES[level]}
					<button
						type="button"
						disabled={order.length === 1}
						title={`Leave ${LEVEL_TITLES[level]} out`}
						aria-label={`Leave ${LEVEL_TITLES[level]} out`}
						onClick={() => setOrder(order.filter((l) => l !== level))}
					>
						×
					</button>
				</span>
			))}
			{left.map((level) => (
				<button type="button" className="button plain" key={level} onClick={() => setOrder([...order, level])}>
					+ {LEVEL_TITLES[level]}
				</button>
			))}
		</fieldset>
	);
}
