interface Props<T extends string> {
	label: string;
	value: T;
	options: readonly (readonly [T, string])[];
	onChange: (value: T) => void;
}

/** One of a few, all in sight. */
export function Segmented<T extends string>({ label, value, options, onChange }: Props<T>) {
	return (
		<fieldset className="segmented" aria-label={label}>
			{options.map(([id, title]) => (
				<button type="button" key={id} aria-pressed={id === value} onClick={() => onChange(id)}>
					{title}
				</button>
			))}
		</fieldset>
	);
}
