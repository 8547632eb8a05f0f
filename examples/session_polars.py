#!/usr/bin/env python3
"""Reads a session of fathom with Polars, and draws two plots: session.py without SQL.

    pip install polars matplotlib
    python3 examples/session_polars.py run.fathom -o run.png

A session is a directory of Parquet files, a folder a table; docs/schema.md lists
every table and column. fathom itself is not needed to read it. Cells begin with
`# %%`, as notebooks and editors know them.
"""

# %% The session: session.json says what was recorded, the folders hold the rows.
import argparse
import json
from pathlib import Path

import polars as pl

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("session", type=Path)
arguments.add_argument("-o", "--output", type=Path, default=Path("session.png"))
arguments.add_argument("--no-plot", action="store_true", help="print the tables only")
options = arguments.parse_args()

meta = json.loads((options.session / "session.json").read_text())
started_at_ns = meta["clock"]["start_monotonic_ns"]
totals = meta["totals"]
print(f"{totals['seen']} calls seen, {totals['stored']} stored, {totals['lost']} lost")

# %% A table is read when it is asked, and only the columns that the question needs.
calls = pl.scan_parquet(options.session / "syscalls" / "*.parquet")

# %% What took the time?
duration = pl.col("dur_ns")
by_call = (
    calls.group_by("syscall")
    .agg(
        calls=pl.len(),
        bytes=pl.col("bytes").sum(),
        total_ms=duration.sum() / 1e6,
        median_us=duration.quantile(0.5, "linear") / 1e3,
        p99_us=duration.quantile(0.99, "linear") / 1e3,
    )
    .sort(["total_ms", "syscall"], descending=[True, False])
    .head(10)
    .collect()
)
print(by_call)

# %% Which files?
by_file = (
    calls.filter(pl.col("path").is_not_null(), pl.col("class") == "data")
    .group_by("path")
    .agg(calls=pl.len(), bytes=pl.col("bytes").sum())
    .sort(["bytes", "path"], descending=[True, False])
    .head(10)
    .collect()
)
print(by_file)

# %% Where in the file, and how fast: offsets and latencies over time.
moves = (
    calls.filter(
        pl.col("class") == "data", pl.col("file_offset").is_not_null(), pl.col("bytes") > 0
    )
    .sort("ts_ns")
    .select(
        "syscall",
        seconds=(pl.col("ts_ns") - started_at_ns) / 1e9,
        mib=pl.col("file_offset") / 1048576,
        us=duration / 1e3,
    )
    .collect()
)
print(f"{len(moves)} reads and writes with an offset")

# %% Mapped files are read and written without calls: their page faults, which are in a table of
# their own. It has no folder when there were none.
if (options.session / "faults").is_dir():
    faults = (
        pl.scan_parquet(options.session / "faults" / "*.parquet")
        .sort("ts_ns")
        .select(
            syscall=pl.lit("page fault"),
            seconds=(pl.col("ts_ns") - started_at_ns) / 1e9,
            mib=pl.col("file_offset") / 1048576,
            us=duration / 1e3,
        )
        .collect()
    )
    print(f"{len(faults)} page faults on mapped files")
    moves = pl.concat([moves, faults])

# %% The plots.
if not options.no_plot:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (where, fast) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 6))
    for (syscall,), group in moves.group_by("syscall", maintain_order=True):
        where.plot(group["seconds"], group["mib"], ".", markersize=2, label=syscall)
        fast.plot(group["seconds"], group["us"], ".", markersize=2, label=syscall)
    where.set_ylabel("offset, MiB")
    fast.set_ylabel("latency, us")
    fast.set_xlabel("seconds since the recording began")
    if len(moves):
        fast.set_yscale("log")
        where.legend(loc="upper left", markerscale=4)
    figure.tight_layout()
    figure.savefig(options.output)
    print(f"plot in {options.output}")
