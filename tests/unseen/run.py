#!/usr/bin/env python3
"""Judges the diagnosis by programs that were labeled before any of its rules was looked at.

usage: run.py [--work DIR] [--keep] FATHOM [programs|real|later|latest|applications|foreign|fresh|recent|novel|further] [NAME...]

FATHOM   the program under test
DIR      where the programs run: on a device, 2 GB free (default /var/tmp/fathom-unseen)
--keep   keep sessions and working directories

Root. Each program is built and set up, its files named in `cold` are dropped from the page cache, and its run.sh is
recorded with all layers and the options in its file `record`. Prints per program the rules that found the labeled problems, those that did not, and findings
that no label allows; at the end recall and precision. DIR/results.json has all findings. Programs that cannot run here
count as errors and enter no figure.
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
KINDS = ("programs", "real", "later", "latest", "applications", "foreign", "fresh", "recent", "novel", "further")
# What runs beside a program may take its processors: true, but of the machine.
OF_THE_MACHINE = {"cpu-starvation"}
ENVIRONMENT = dict(os.environ, LC_ALL="C.UTF-8")


def labels(kind):
    for line in (HERE / kind / "labels.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, rules, why = (part.strip() for part in line.split("|", 2))
            rules = [rule for rule in rules.split() if rule != "-"]
            wanted = {rule for rule in rules if not rule.endswith("?")}
            yield name, wanted, {rule[:-1] for rule in rules if rule.endswith("?")} | OF_THE_MACHINE, why


def drop(work, patterns):
    for path in (path for pattern in patterns for path in glob.glob(str(work / pattern), recursive=True)):
        if os.path.isfile(path) and not os.path.islink(path):
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def run(arguments, cwd, log, seconds=300):
    with open(log, "wb") as out:
        return subprocess.run(
            arguments, cwd=cwd, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=seconds
        ).returncode


def judge(fathom, kind, name, wanted, allowed, directory):
    work, session = directory / kind / name, directory / kind / f"{name}.fathom"
    for old in (work, session):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(HERE / kind / name, work)
    os.chmod(work, 0o755)
    for step in ("build.sh", "setup.sh"):
        if (work / step).exists() and run(["sh", step], work, f"{work}.{step}.log"):
            return {"error": f"{step} failed: {work}.{step}.log"}
    subprocess.run(["sync", "-f", work], check=True)
    if (work / "cold").exists():
        drop(work, (work / "cold").read_text().split())
    # The library path of fathom is not the program's.
    program = ["env", "-u", "LD_LIBRARY_PATH", "sh", "run.sh"]
    more = (work / "record").read_text().split() if (work / "record").exists() else []
    status = run([fathom, "record", "-q", "--layers", "all", *more, "-o", session, "--", *program], work, f"{work}.log")
    told = subprocess.run([fathom, "diagnose", "--format", "json", session], capture_output=True, timeout=300)
    if told.returncode not in (0, 1):
        return {"error": f"diagnose: {told.stderr.decode(errors='replace').strip()}"}
    findings = [
        {"rule": f["rule"], "title": f["title"], "also": [a["rule"] for a in f["also"]]}
        for f in json.loads(told.stdout)["findings"]
    ]
    rules = [finding["rule"] for finding in findings]
    present = set(rules).union(*(finding["also"] for finding in findings))
    return {
        "status": status,
        "wanted": sorted(wanted),
        "found": sorted(wanted & present),
        "missed": sorted(wanted - present),
        "allowed": [rule for rule in rules if rule in allowed],
        "false": [rule for rule in rules if rule not in wanted | allowed],
        "findings": findings,
    }


def totals(results):
    good = [result for result in results.values() if "error" not in result]
    count = lambda key: sum(len(result[key]) for result in good)
    share = lambda part, whole: round(part / whole, 3) if whole else None
    healthy = [result for result in good if not result["wanted"]]
    return {
        "programs": len(good),
        "errors": len(results) - len(good),
        "wanted": count("wanted"),
        "found": count("found"),
        "recall": share(count("found"), count("wanted")),
        "findings": count("findings"),
        "false": count("false"),
        "precision": share(count("findings") - count("false"), count("findings")),
        "healthy": len(healthy),
        "healthy_without_false": sum(not result["false"] for result in healthy),
    }


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--work", default="/var/tmp/fathom-unseen", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("fathom")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    fathom = os.path.abspath(options.fathom)
    kinds = [name for name in options.names if name in KINDS] or KINDS
    names = set(options.names).difference(KINDS)
    everything = {}
    for kind in kinds:
        results = {}
        (options.work / kind).mkdir(parents=True, exist_ok=True)
        for name, wanted, allowed, why in labels(kind):
            if names and name not in names:
                continue
            try:
                result = judge(fathom, kind, name, wanted, allowed, options.work)
            except subprocess.TimeoutExpired as error:
                result = {"error": f"{error.cmd} took more than {error.timeout} s"}
            results[name] = result | {"why": why}
            if not options.keep:
                for left in (options.work / kind / name, options.work / kind / f"{name}.fathom"):
                    shutil.rmtree(left, ignore_errors=True)
            words = [
                f"{key} {' '.join(result[key])}" for key in ("found", "missed", "false") if result.get(key)
            ]
            if result.get("status"):
                words.append(f"status {result['status']}")
            print(f"{name:24} {result.get('error') or '; '.join(words) or '-'}", flush=True)
        everything[kind] = {"totals": totals(results), "programs": results}
        print(kind, json.dumps(everything[kind]["totals"]), flush=True)
    (options.work / "results.json").write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    sys.exit(main())
