#!/usr/bin/env python3
"""Words that scripts/words.txt refuses, in Markdown, in comments, and in strings with blanks.

    words.py            fail on them, except in the areas that words.txt lists as not yet covered
    words.py --count    how many each area has
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Text of others, generated data, and lists of words such as this check's.
SKIPPED = re.compile(r"^(scripts/words\.|tests/python/.*\.json|tests/unseen/(?!README)|tests/corpus/(?!README|main)|bpf/include/vmlinux|web/src/.*\.test\.ts)")
TEXT = re.compile(r"^(.*\.md|(crates|tests|benches|fuzz)/.*\.(rs|sql)|bpf/.*\.(c|h|def)|web/src/.*\.tsx?)$")
# A comment, or a string: one with a blank is for people.
COMMENT = re.compile(r"^\s*(?://[/!]?|--|\*|/\*\*?)(?:\s|$)(.*)|.*?\s//\s(.*)|.*?/\*\s(.*)\*/")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"|`([^`]*)`|"([^"]*\\?)$')
# The rest of a string that the line before left open with a backslash.
CONTINUED = re.compile(r'^((?:[^"\\]|\\.)*)(?:"|\\$)')


def rules():
    words, areas, section = [], [], None
    for line in (ROOT / "scripts/words.txt").read_text().splitlines():
        if line.startswith("["):
            section = line
        elif line.strip() and not line.startswith("#"):
            if section == "[words]":
                pattern, _, instead = line.rpartition("|")
                flags = 0 if re.search("[A-Z]", pattern) else re.IGNORECASE
                words.append((re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])" if pattern[0].isalpha() else pattern, flags), instead))
            else:
                areas.append(line.strip())
    return words, areas


def pieces(path, lines):
    """The text of a file: line numbers and pieces without code."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if path.endswith(".md"):
            fenced ^= line.lstrip().startswith("```")
            if not fenced and not line.startswith(("    ", "#", "```")):
                yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "``", line)
            continue
        continued = number > 1 and lines[number - 2].endswith("\\") and CONTINUED.match(line)
        if continued:
            yield number, continued[1]
            line = line[continued.end():]
        comment = COMMENT.match(line)
        if comment:
            text = next(group for group in comment.groups() if group is not None)
            yield number, re.sub(r"`[^`]*`", "``", text)
        for string in STRING.findall(line) if not comment or not line.lstrip().startswith(("/", "*", "-")) else ():
            text = "".join(string)
            if " " in text.strip() and re.search(r"[a-z]{2} [a-z]", text):
                yield number, text


def found(words):
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for path in listed.stdout.splitlines():
        if TEXT.match(path) and not SKIPPED.match(path) and (ROOT / path).is_file():
            for number, text in pieces(path, (ROOT / path).read_text(errors="replace").splitlines()):
                for pattern, instead in words:
                    for match in pattern.finditer(text):
                        yield path, number, match[0].strip(), instead, text.strip()


def area(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("crates", "docs", "web", "tests", "examples") and len(parts) > 2 else path if path.endswith(".md") else parts[0]


def main():
    words, areas = rules()
    if sys.argv[1:] == ["--count"]:
        counts = collections.Counter(area(path) for path, *_ in found(words))
        for name, count in sorted(counts.items()):
            print(f"{count:6} {name}")
        print(f"{counts.total():6} together")
        return
    used, bad = set(), 0
    for path, number, word, instead, text in found(words):
        covered = [name for name in areas if path == name or path.startswith(name.rstrip("/") + "/")]
        used.update(covered)
        if not covered:
            bad += 1
            print(f"{path}:{number}: {word!r}: {instead}\n    {text}")
    for name in areas:
        if name not in used:
            bad += 1
            print(f"scripts/words.txt: {name} has none of the words: remove it from [not yet]")
    if bad:
        raise SystemExit(f"{bad} places; scripts/words.txt has the list")


main()
