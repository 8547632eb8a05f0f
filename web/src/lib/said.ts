// What a plot shows, in words: for readers who do not see it.

export interface Said {
	label: string;
	/** NaN where there is nothing. */
	values: ArrayLike<number>;
}

/** Series that are told one by one; of more only how many there are. */
const TOLD = 6;

/** The highest value of each series and where it lies; what has none is named as such. */
export function said(
	series: readonly Said[],
	t: ArrayLike<number>,
	format: (value: number) => string,
	at: (t: number) => string,
): string {
	const told = series.slice(0, TOLD).map(({ label, values }) => {
		let highest = -1;
		for (let i = 0; i < values.length; i += 1) {
			const value = values[i] ?? Number.NaN;
			if (Number.isFinite(value) && (highest < 0 || value > (values[highest] ?? 0))) highest = i;
		}
		const most = values[highest];
		if (most === undefined) return `${label}: nothing`;
		return most === 0 ? `${label}: 0 throughout` : `${label}: at most ${format(most)}, at ${at(t[highest] ?? 0)}`;
	});
	if (series.length > TOLD) told.push(`and ${series.length - TOLD} more`);
	return told.join("; ");
}
