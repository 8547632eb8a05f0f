#!/usr/bin/env python3
"""Compares the time that findings claim with the time that their fix saves.

usage: savings.py FATHOM [RULE...]

FATHOM   the program under test
RULE     rules whose programs are measured (default: all rules of performance)

Root. For each rule RULE/bad is recorded, which gives the claim: the time that the finding says is lost. Then RULE/bad and
RULE/good, which does the same with the advice followed, run without any recording, in turns, each on a new ext4. What is saved
is the difference of their times by the clock. Medians of all runs. Prints a line of a Markdown table for each rule.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROUNDS = 5
RECORDINGS = 3


def on_new_ext4(name, command):
    """Seconds that the program took, on a file system of its own; `command` goes before it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        image, mounted = f"{directory}/image", f"{directory}/mounted"
        os.mkdir(mounted)
        with open(image, "wb") as file:
            file.truncate(256 << 20)
        lazy = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
        subprocess.run(["mkfs.ext4", "-qF", "-b", "4096", "-E", lazy, image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
        try:
            quiet = subprocess.DEVNULL
            program = [sys.executable, "-S", "-E", "-B", HERE, name]
            subprocess.run([*program, "setup"], cwd=mounted, check=True)
            helper = subprocess.Popen([*program, "helper"], cwd=mounted)
            began = time.monotonic()
            subprocess.run([*command, *program, "run"], cwd=mounted, check=True, stdout=quiet, stderr=quiet)
            took = time.monotonic() - began
            helper.wait()
            return took
        finally:
            subprocess.run(["umount", "-R", mounted], check=True)


def claim(fathom, rule):
    """Seconds that the findings of the rule say are lost; None when there is none."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        session = f"{directory}/s.fathom"
        on_new_ext4(f"{rule}/bad", [fathom, "record", "-q", "--layers", "all", "-o", session, "--"])
        told = subprocess.run([fathom, "diagnose", "--format", "json", session], capture_output=True)
        costs = [f["cost_ns"] for f in json.loads(told.stdout)["findings"] if f["rule"] == rule]
        return sum(cost or 0 for cost in costs) / 1e9 if costs else None


def main():
    fathom, *rules = sys.argv[1:]
    fathom = os.path.abspath(fathom)
    for rule in rules:
        claims = [claim(fathom, rule) for _ in range(RECORDINGS)]
        times = {"bad": [], "good": []}
        for _ in range(ROUNDS):
            for which, taken in times.items():
                taken.append(on_new_ext4(f"{rule}/{which}", []))
        bad, good = (statistics.median(taken) for taken in times.values())
        told = [claim for claim in claims if claim is not None]
        claimed = statistics.median(told) if told else None
        words = f"| `{rule}` | {claimed * 1e3:.0f} ms | {(bad - good) * 1e3:.0f} ms | {claimed / (bad - good):.2f} |" if told else f"| `{rule}` | none |"
        print(words, f"  bad {bad:.3f} good {good:.3f} claims {claims}", flush=True)


if __name__ == "__main__":
    main()
