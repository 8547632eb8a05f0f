#!/usr/bin/env python3
"""Compares the time that findings claim with the time that their fix saves.

usage: savings.py FATHOM [RULE...]

FATHOM   the program under test
RULE     rules whose programs are measured (default: all that have a program with the problem and one without)

Root, on a quiet machine. For each rule RULE/bad is recorded, which gives the claim: the time that the finding says is lost. Then RULE/bad and
RULE/good, which does the same with the advice followed, run without any recording, in turns, each on a new ext4. What is saved
is the difference of their times by the clock, times the threads that the finding speaks of, as costs are times of threads.
Medians of all runs. Prints a line of a Markdown table for each rule.
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
# Threads that wait at the same time in RULE/bad.
THREADS = {"contention": 4}


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
    """Seconds that the findings of the rule say are lost; None when none does."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        session = f"{directory}/s.fathom"
        on_new_ext4(f"{rule}/bad", [fathom, "record", "-q", "--layers", "all", "-o", session, "--"])
        told = subprocess.run([fathom, "diagnose", "--format", "json", session], capture_output=True)
        found = [finding for finding in json.loads(told.stdout)["findings"] if finding["rule"] == rule]
        costs = [finding["cost_ns"] for finding in found if finding["cost_ns"] is not None]
        return sum(costs) / 1e9 if costs else None


def rules_with_a_pair():
    paired = {"bad", "good"}
    forms = {}
    for line in (HERE / "labels.txt").read_text().splitlines():
        rule, _, form = line.split("|")[0].strip().partition("/")
        forms.setdefault(rule, set()).add(form)
    return [rule for rule, has in forms.items() if paired <= has]


def main():
    fathom, *rules = sys.argv[1:]
    fathom = os.path.abspath(fathom)
    print("| Rule | Claimed | Saved | Claimed/saved |\n|---|---|---|---|")
    for rule in rules or rules_with_a_pair():
        claims = [claim(fathom, rule) for _ in range(RECORDINGS)]
        told = [claim for claim in claims if claim is not None]
        if not told:
            continue
        times = {"bad": [], "good": []}
        for _ in range(ROUNDS):
            for which, taken in times.items():
                taken.append(on_new_ext4(f"{rule}/{which}", []))
        bad, good = (statistics.median(taken) for taken in times.values())
        claimed, saved = statistics.median(told), (bad - good) * THREADS.get(rule, 1)
        ratio = f"{claimed / saved:.2f}" if saved > 0 else "-"
        print(f"| `{rule}` | {claimed * 1e3:.0f} ms | {saved * 1e3:.0f} ms | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
