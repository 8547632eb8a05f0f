#!/usr/bin/env python3
"""Checks imports against scripts/imports.txt; prints what differs and exits with 1 then."""

import os
import re
import sys
from collections import defaultdict
from pathlib import Path

CYCLES = "cycles"


def rules(text):
    """{section: [(room, what it may import)]}, in the order of the file."""
    found = defaultdict(list)
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            section = line.strip("[]")
        elif line:
            room, _, allowed = line.partition(":")
            found[section].append((room, allowed.split()))
    return found


def crates(root, _rooms):
    """{(crate, dependency): manifest}; dependencies of tests alone are left out."""
    edges, rooms = {}, set()
    for manifest in sorted(root.glob("*/Cargo.toml")):
        crate, table = manifest.parent.name, None
        rooms.add(crate)
        for line in manifest.read_text().splitlines():
            if line.startswith("["):
                table = line.strip("[] ")
            name = re.match(r"fathom-([\w-]+)", line)
            if name and table in ("dependencies", "build-dependencies"):
                edges[crate, name[1]] = manifest
    return rooms, edges


def names(text, at=0):
    """The first names of the paths that begin at `at`: one, or those of a group in braces."""
    if not text.startswith("{", at):
        name = re.compile(r"\w+").match(text, at)
        return [name[0]] if name else []
    found, depth, first = [], 0, True
    for part in re.finditer(r"[{},]|\w+", text[at:]):
        depth += {"{": 1, "}": -1}.get(part[0], 0)
        if depth == 0:
            break
        if depth == 1 and part[0] in "{,":
            first = True
        elif first and part[0] not in "{},":
            found.append(part[0])
            first = False
    return found


def code(path):
    """A Rust file without comments and tests."""
    text = re.sub(r"//.*", "", path.read_text())
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def modules(root, _rooms):
    """{(module, module that it uses): file} of the outermost modules of a crate."""
    top = {path.stem for path in root.iterdir() if path.suffix == ".rs" or path.is_dir()}
    rooms = top - {"lib", "main", "tests"}
    exported = {}
    for lib in (root / "lib.rs", root / "main.rs"):
        if lib.exists():
            for use in re.finditer(r"\buse (?:crate::|self::)?(\w+)::([^;]+);", code(lib)):
                if use[1] in rooms:
                    exported.update((leaf, use[1]) for leaf in re.findall(r"\w+", use[2]))
    edges = {}
    for path in sorted(root.rglob("*.rs")):
        place = path.relative_to(root).with_suffix("").parts
        place = place[:-1] if place[-1] == "mod" else place
        if place[0] not in rooms or "tests" in place:
            continue
        text = code(path)
        for use in re.finditer(r"\b(crate|(?:super::)*super)::", text):
            up = use[1].count("super")
            base = [] if use[1] == "crate" else list(place[: len(place) - up])
            for name in base[:1] or names(text, use.end()):
                name = name if name in rooms else exported.get(name)
                if name and name != place[0]:
                    edges[place[0], name] = path
    return rooms, edges


def pages(root, wanted):
    """{(folder, folder that it imports): file}; of a folder `NAME/*` each folder in it."""
    split = {room.split("/")[0] for room in wanted if room.endswith("/*")}

    def room(parts):
        inside = parts[0] in split and len(parts) > 2
        return "/".join(parts[: 2 if inside else 1])

    rooms, edges = {path.name for path in root.iterdir() if path.is_dir()}, {}
    for path in sorted(root.rglob("*.ts*")):
        here = path.relative_to(root)
        if len(here.parts) == 1:
            continue
        for use in re.finditer(r"""(?:\bfrom|\bimport\(?)\s*["'](\.[^"']*)""", path.read_text()):
            to = Path(os.path.normpath(here.parent / use[1]))
            to = to.parts + ("index",) if (root / to).is_dir() else to.parts
            edges[room(here.parts), room(to)] = path
    # The folders of a split one are alike, but for which of them they are.
    alike = {}
    for (a, b), path in edges.items():
        if a != b:
            a, b = (r.split("/")[0] + "/*" if "/" in r else r for r in (a, b))
            alike[a, b] = path
    return rooms | {room for room in wanted if room.endswith("/*")}, alike


def cycles(edges):
    """The modules that reach themselves, those of a cycle together."""
    reach = defaultdict(set)
    for a, b in edges:
        reach[a].add(b)
    for via in list(reach):
        for to in reach.values():
            if via in to:
                to |= reach[via]
    return {" ".join(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in reach if a in reach[a]}


def section(root, name, lines):
    """What is wrong with one section."""
    rooms = dict(lines)
    read = pages if name.startswith("web") else modules if name.endswith("src") else crates
    there, edges = read(root / name, rooms)
    above = []
    for room, allowed in lines:
        if room not in there:
            yield f"[{name}] {room}: there is no such entry any more"
        for other in allowed:
            if other not in above:
                yield f"[{name}] {room}: {other} must stand above it"
            elif (room, other) not in edges:
                yield f"[{name}] {room}: {other} is not imported any more"
        above.append(room)
    for room in sorted(there - set(rooms)):
        if any(room in edge for edge in edges):
            yield f"[{name}] {room} is not listed"
    for (a, b), path in sorted(edges.items()):
        if b not in rooms.get(a, []) and a in rooms:
            yield f"{path.relative_to(root)}: {a} must not import {b} ([{name}])"


def problems(root, text):
    found = rules(text)
    listed = {f"crates/{crate}/src: " + " ".join(cycle) for crate, cycle in found.pop(CYCLES, [])}
    there = set()
    for name, lines in found.items():
        yield from section(root, name, lines)
    for src in sorted(root.glob("crates/*/src")):
        name = str(src.relative_to(root))
        if name not in found:
            there |= {f"{name}: {cycle}" for cycle in cycles(modules(src, None)[1])}
    yield from (f"{cycle} import each other" for cycle in sorted(there - listed))
    yield from (f"[{CYCLES}] {cycle} do not import each other any more" for cycle in sorted(listed - there))


def main():
    root = Path(__file__).resolve().parent.parent
    found = list(problems(root, (root / "scripts/imports.txt").read_text()))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
