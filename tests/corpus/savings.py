#!/usr/bin/env python3
"""Compares the time that findings claim with the time that their fix saves.

usage: savings.py FATHOM [RULE|KIND/NAME...]

FATHOM      the program under test
RULE        a rule that has a program with the problem, RULE/bad, and one that does the same with the advice followed, RULE/good
KIND/NAME   a program of tests/unseen that has a fixed.sh, which does what its run.sh does with the advice followed
            (default: all of both)

Root, on a quiet machine. The program is recorded, which gives the claim: the time that the findings of the rule say is lost. Then it and
its fixed form run without any recording, in turns, each on a new ext4 (those of tests/unseen in a new directory of /var/tmp).
What is saved is the difference of their times by the clock, times the threads that the finding speaks of, as costs are
times of threads. Medians of all runs. Prints a line of a Markdown table for each.
"""

import importlib.util
import json
import os
import shutil
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

spec = importlib.util.spec_from_file_location("unseen", HERE.parent / "unseen/run.py")
unseen = importlib.util.module_from_spec(spec)
spec.loader.exec_module(unseen)


def timed(command, cwd):
    began = time.monotonic()
    subprocess.run(command, cwd=cwd, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def of_corpus(rule, fixed, recorder):
    """Seconds that a program of the corpus takes; `recorder` goes before it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        image, mounted = f"{directory}/image", f"{directory}/mounted"
        os.mkdir(mounted)
        with open(image, "wb") as file:
            file.truncate(256 << 20)
        lazy = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
        subprocess.run(["mkfs.ext4", "-qF", "-b", "4096", "-E", lazy, image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
        try:
            program = [sys.executable, "-S", "-E", "-B", HERE, f"{rule}/{'good' if fixed else 'bad'}"]
            subprocess.run([*program, "setup"], cwd=mounted, check=True)
            helper = subprocess.Popen([*program, "helper"], cwd=mounted)
            took = timed([*recorder, *program, "run"], mounted)
            helper.wait()
            return took
        finally:
            subprocess.run(["umount", "-R", mounted], check=True)


def of_unseen(name, fixed, recorder):
    """Seconds that a program of tests/unseen takes; `recorder` goes before it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        work = Path(directory) / "work"
        shutil.copytree(HERE.parent / "unseen" / name, work)
        for step in ("build.sh", "setup.sh"):
            if (work / step).exists():
                timed(["sh", step], work)
        subprocess.run(["sync", "-f", work], check=True)
        if (work / "cold").exists():
            unseen.drop(work, (work / "cold").read_text().split())
        program = ["env", "-u", "LD_LIBRARY_PATH", "sh", "fixed.sh" if fixed else "run.sh"]
        return timed([*recorder, *program], work)


def claim(fathom, rule, run):
    """Seconds that the findings of the rule say are lost; None when none does."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        session = f"{directory}/s.fathom"
        run(False, [fathom, "record", "-q", "--layers", "all", "-o", session, "--"])
        told = subprocess.run([fathom, "diagnose", "--format", "json", session], capture_output=True)
        found = [finding for finding in json.loads(told.stdout)["findings"] if finding["rule"] == rule]
        costs = [finding["cost_ns"] for finding in found if finding["cost_ns"] is not None]
        return sum(costs) / 1e9 if costs else None


def everything():
    """Rules with a pair of programs, and programs with a fixed form."""
    forms = {}
    for line in (HERE / "labels.txt").read_text().splitlines():
        rule, _, form = line.split("|")[0].strip().partition("/")
        forms.setdefault(rule, set()).add(form)
    yield from (rule for rule, has in forms.items() if has >= {"bad", "good"})
    for fixed in sorted((HERE.parent / "unseen").glob("*/*/fixed.sh")):
        yield f"{fixed.parent.parent.name}/{fixed.parent.name}"


def main():
    fathom, *names = sys.argv[1:]
    fathom = os.path.abspath(fathom)
    print("| Rule | Program | Claimed | Saved | Claimed/saved |\n|---|---|---|---|---|")
    for name in names or everything():
        kind, _, short = name.partition("/")
        if short:
            rule = next(sorted(wanted)[0] for label, wanted, _, _ in unseen.labels(kind) if label == short)
            run = lambda fixed, recorder: of_unseen(name, fixed, recorder)
        else:
            rule, short = name, "corpus"
            run = lambda fixed, recorder: of_corpus(name, fixed, recorder)
        claims = [claim(fathom, rule, run) for _ in range(RECORDINGS)]
        told = [claim for claim in claims if claim is not None]
        if not told:
            continue
        rounds = [(run(False, []), run(True, [])) for _ in range(ROUNDS)]
        bad, good = (statistics.median(taken) for taken in zip(*rounds))
        claimed, saved = statistics.median(told), (bad - good) * THREADS.get(name, 1)
        ratio = f"{claimed / saved:.2f}" if saved > 0 else "-"
        print(f"| `{rule}` | {short} | {claimed * 1e3:.0f} ms | {saved * 1e3:.0f} ms | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
