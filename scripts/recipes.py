#!/usr/bin/env python3
"""Follows the recipes of CONTRIBUTING.md ("To add ...") in a copy of the tree.

usage: recipes.py TARGET NODE

TARGET  Cargo's target directory: what it has of other people's crates is linked, not built again
NODE    the Node.js that checks the page

For each recipe that has a dummy here, the files marked `code` get the dummy and no others do. Then the program and the
tests that compare generated files are built once, and everything is asked whether it knows the dummy. A file that the
recipe does not name and that would have to change makes one of these steps fail.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path

NAME = "recipe"
ROOT = Path(__file__).resolve().parent.parent
# Programs find DuckDB's library by their own place, which is another one here.
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=str(ROOT / ".deps/duckdb"))


def after(anchor, text):
    """The first match of `anchor` with `text` behind it."""

    def edit(old):
        match = re.search(anchor, old, re.MULTILINE)
        assert match, f"nothing matches {anchor!r}"
        return old[: match.end()] + text + old[match.end() :]

    return edit


def all_of(*edits):
    def edit(old):
        for one in edits:
            old = one(old)
        return old

    return edit


def new(text):
    return lambda old: text


def longer(old):
    """The array of features that may be missing, by one."""
    return re.sub(r"(OPTIONAL: \[\(Feature, &str, &str\); )(\d+)", lambda m: m[1] + str(int(m[2]) + 1), old)


RULE = """//! `recipe`: reads.

use crate::prelude::*;

static INFO: RuleInfo = RuleInfo {
    id: "recipe",
    name: "Something is read",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Read],
    about_calls: false,
    what: "A program reads.",
    when: "A read.",
    cost: "nothing",
    advice: "Do not read.",
    not_when: "Always.",
    bad: "read(fd, &byte, 1);",
    good: ";",
    reference: "read(2)",
};

rule! {
    pub struct Recipe {
        examples: Examples,
    }
}

impl Rule for Recipe {
    fn call(&mut self, call: &Call, _: &Context) {
        if call.syscall == "recipe" {
            self.examples.add(call);
        }
    }

    fn findings(&self, _: &Run, out: &mut Vec<Found>) {
        let examples = self.examples.list();
        if !examples.is_empty() {
            out.push(Found {
                severity: Some(Severity::Low),
                title: "a recipe is read".into(),
                subject: Subject::process(7, "recipe"),
                examples,
                query: calls!("syscall = 'recipe'"),
                ..Found::default()
            });
        }
    }
}
"""

EXPORTER = """//! A line a row.

use std::io::Write;

use crate::Exporter;
use crate::error::Result;
use crate::row::Row;

pub(crate) struct Recipe;

impl Exporter for Recipe {
    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "exported {}", row.name.unwrap_or(""))?;
        Ok(())
    }
}
"""

IMPORTER = """//! A call a line, by its name.

use std::path::PathBuf;

use fathom_model::meta::SessionMeta;
use fathom_model::syscalls::Syscall;

use crate::builder::{Builder, Call};
use crate::error::ImportError;

pub(crate) fn looks_like(head: &str) -> bool {
    head.starts_with("recipe\\n")
}

pub(crate) fn read(
    files: &[PathBuf],
    builder: &mut Builder,
    _: &mut SessionMeta,
    _: &mut dyn FnMut(u64),
) -> Result<Vec<String>, ImportError> {
    for file in files {
        let text = std::fs::read(file).map_err(ImportError::io("read", file))?;
        for (i, name) in text.split(|b| *b == b'\\n').enumerate() {
            if let Some(syscall) = Syscall::named(name) {
                let call = Call {
                    ts_ns: i as i64,
                    dur_ns: Some(1),
                    pid: Some(7),
                    tid: 7,
                    ret: Some(1),
                    ..Call::default()
                };
                builder.call(syscall, &call)?;
            }
        }
    }
    Ok(Vec::new())
}
"""

PROGRAM = """#include "include/layers.h"

SEC("tp_btf/fuse_request_end")
int BPF_PROG(layer_recipe_end, void *req)
{
	struct span_record record = { .span = SPAN_RECIPE, .ts_ns = bpf_ktime_get_ns() };
	span_output(&record);
	return 0;
}
"""

PAGE_VIEW = """import { Panel } from "../../components/panel";

export default function Recipe() {
	return <Panel title="Recipe">nothing</Panel>;
}
"""

# By the titles of the recipes: the files marked `code` and what is done to them.
DUMMIES = {
    "A system call": {
        "bpf/syscalls.def": lambda old: old + "recipe 500 500 data read bytes fd buf size\n",
        "bpf/i386.def": lambda old: old + "recipe 500\n",
    },
    "A layer": {
        "crates/model/src/layers.rs": after(
            r'^    Fuse "fuse".*\n',
            '    /// A dummy.\n    Recipe "recipe", Recorded::Asked, "nothing", "recipes", [];\n',
        ),
        "bpf/NAME.bpf.h": new(PROGRAM),
        "bpf/fathom.bpf.c": after(r'#include "fuse.bpf.h"\n', '#include "recipe.bpf.h"\n'),
        "bpf/include/layer_records.h": after(r"\tSPAN_FUSE = .*\n", "\t/* A dummy. */\n\tSPAN_RECIPE = 99,\n"),
        "crates/enrich/src/layers/names.rs": all_of(
            after(r"SPAN_FUSE,", " SPAN_RECIPE,"),
            after(r"SPAN_FUSE => .*\n", '        SPAN_RECIPE => (Layer::Recipe, "recipe"),\n'),
        ),
        "crates/probe/src/hooks/mod.rs": all_of(
            after(r"^    Fuse,\n", "    /// A dummy.\n    Recipe,\n"),
            after(r"Layer::Fuse => .*\n", "            Layer::Recipe => &[Feature::Recipe],\n"),
            after(r"OPTIONAL: .*\n", '        (Feature::Recipe, "layer recipe", "recipes are not recorded"),\n'),
            longer,
        ),
        "crates/probe/src/hooks/rows.rs": after(
            r'"layer_fuse_end",\n.*\n    \),\n',
            '    tracepoint!(Recipe, "layer_recipe_end", "recipes are not told apart"),\n',
        ),
    },
    "A column": {
        "crates/model/src/tables.rs": after(r" IRQS irqs .*\n", "        /// A dummy.\n        recipe: I32 null,\n"),
        "crates/enrich/src/**/*.rs": after(r"\bIrqRow \{\n", "recipe: fathom_model::batch::NULL_I32,\n"),
    },
    "A view in SQL": {
        "crates/query/sql/NAME.sql": new(
            "-- One row a recipe.\n--\n-- calls: Calls.\nSELECT sum(calls) AS calls FROM by_syscall WHERE syscall = 'recipe'\n"
        ),
    },
    "A rule": {
        "crates/diagnose/src/rules/NAME.rs": new(RULE),
        "crates/diagnose/src/rules/mod.rs": after(r"^rules! \{\n", "    recipe::Recipe,\n"),
    },
    "An exporter": {
        "crates/export/src/NAME.rs": new(EXPORTER),
        "crates/export/src/lib.rs": all_of(
            after(r"^mod perfetto;\n", "mod recipe;\n"),
            after(
                r"ALL: &\[Format\] = &\[\n",
                'Format { name: "recipe", what: "a dummy", binary: false, '
                "make: Make::Exporter(|_| Ok(Box::new(recipe::Recipe))), sets: Sets::InTurn },\n",
            ),
        ),
    },
    "An importer": {
        "crates/import/src/NAME.rs": new(IMPORTER),
        "crates/import/src/lib.rs": all_of(
            after(r"^mod error;\n", "mod recipe;\n"),
            after(
                r"ALL: &\[Format\] = &\[\n",
                'Format { name: "recipe", log: "a dummy", looks_like: recipe::looks_like, '
                "survey: |_| Ok(Box::new(recipe::read)) },\n",
            ),
        ),
    },
    "A view of the page": {
        "web/src/views/NAME/index.tsx": new(PAGE_VIEW),
        "web/src/views/index.ts": after(
            r"VIEWS: readonly View\[\] = \[\n",
            '\t{ id: "recipe", title: "Recipe", about: "Nothing", scope: "session", load: () => import("./recipe") },\n',
        ),
    },
}


def recipes():
    """The recipes by title: rows of a file and what it is."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    text = text[text.index("\n## To add ...") :].split("\n## ")[1]
    found = {}
    for section in text.split("\n### ")[1:]:
        title, _, body = section.partition("\n")
        found[title] = re.findall(r"^\| `([^`]+)` \| (code|test|text|generated) \|", body, re.MULTILINE)
    return found


def follow(recipe, rows, tree):
    """Changes the files marked `code`; returns them and those that are generated."""
    dummy = DUMMIES[recipe]
    code = [file for file, what in rows if what == "code"]
    assert sorted(code) == sorted(dummy), f"CONTRIBUTING.md lists {code}, the dummy changes {list(dummy)}"
    touched = set()
    for pattern, edit in dummy.items():
        path = tree / pattern.replace("NAME", NAME)
        if "*" in pattern:
            # The one file where the edit finds its place.
            for found in map(Path, glob.glob(str(path), recursive=True)):
                try:
                    text = edit(found.read_text())
                except AssertionError:
                    continue
                path = found
                break
        else:
            text = edit(path.read_text() if path.exists() else None)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        touched.add(str(path.relative_to(tree)))
    return touched, {file.replace("NAME", NAME) for file, what in rows if what == "generated"}


def run(*command, cwd, **options):
    done = subprocess.run([str(c) for c in command], cwd=cwd, text=True, capture_output=True, **options)
    if done.returncode:
        sys.exit(f"{command[0]} failed in {cwd}:\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
    return done.stdout


def copy(tree):
    """What is not ignored, with its times, so that what was built of it stays fresh."""
    # Not by git: a checkout may be another user's, or none.
    ignored = [".git", *(ROOT / ".gitignore").read_text().split()]

    def ignore(folder, names):
        inside = Path(folder).relative_to(ROOT)
        paths = {name: f"/{inside / name}" for name in names}
        return {
            name
            for name, path in paths.items()
            if any(fnmatch(path if "/" in pattern else name, pattern) for pattern in ignored)
        }

    shutil.copytree(ROOT, tree, symlinks=True, ignore=ignore, dirs_exist_ok=True)
    for link in (".deps", "web/node_modules", "web/dist"):
        (tree / link).symlink_to((ROOT / link).resolve())
    run("git", "init", "-q", cwd=tree)
    run("git", "add", "-A", cwd=tree)
    run("git", "-c", "user.name=recipes", "-c", "user.email=", "commit", "-qm", "copy", cwd=tree)


def link(file, to):
    """Links what compilers replace as a whole; Cargo writes over its notes, which are copied."""
    if re.search(r"\.(rlib|rmeta|so|a|o)$", file):
        os.link(file, to)
    else:
        shutil.copy2(file, to)


def link_dependencies(built, target):
    """Takes over what was built of crates that are not of this workspace."""
    for part in ("deps", "build", ".fingerprint"):
        for entry in (built / part).iterdir():
            ours = "fathom" in entry.name
            program = part == "deps" and not re.search(r"\.(rlib|rmeta|so|d)$", entry.name)
            if ours or program:
                continue
            to = target / part / entry.name
            if entry.is_dir():
                shutil.copytree(entry, to, copy_function=link, symlinks=True)
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                link(str(entry), to)


def cargo(command, words, target, tree):
    # Our crates as they compile fastest, the others as they were built.
    ours = re.findall(r'^name = "(fathom-.*)"', (tree / "Cargo.lock").read_text(), re.MULTILINE)
    fast = [
        word
        for crate in ours
        for setting in ("opt-level=0", "debug=0")
        for word in ("--config", f"profile.release.package.{crate}.{setting}")
    ]
    # The same path of DuckDB's library, or its bindings would be built again.
    env = dict(ENVIRONMENT, CARGO_TARGET_DIR=str(target), DUCKDB_LIB_DIR=str(ROOT / ".deps/duckdb"), FATHOM_BLESS="1")
    run("cargo", *fast, command, "--release", "--locked", "--offline", "--workspace", *words, cwd=tree, env=env)


def expect(what, text):
    if not re.search(rf"\b{NAME}\b", text):
        sys.exit(f"{what} does not know the dummy:\n{text[-3000:]}")


def main(built, node, tree):
    began = time.monotonic()
    work = built / "recipes"
    shutil.rmtree(work, ignore_errors=True)
    target = work / "target"
    target.mkdir(parents=True)
    copy(tree)
    link_dependencies(built / "release", target / "release")
    listed = recipes()
    code, generated = set(), set()
    for title, rows in listed.items():
        for file, what in rows:
            there = "NAME" in file or glob.glob(str(ROOT / file), recursive=True)
            assert there, f"{title}: there is no {file}"
        if title in DUMMIES:
            touched, made = follow(title, rows, tree)
            code |= touched
            generated |= made
    assert not DUMMIES.keys() - listed.keys(), f"CONTRIBUTING.md lacks {DUMMIES.keys() - listed.keys()}"

    run(node, "node_modules/.bin/tsc", "--noEmit", cwd=tree / "web")
    cargo("build", ["--bin", "fathom"], target, tree)
    # Those that write generated files, and those of the lists.
    tests = ["every_column_of_a_view_is_documented", "the_pages_are_up_to_date", "the_page_has"]
    tests += ["syscalls::tests", "layers::tests", "hooks::"]
    cargo("test", ["--lib", "--test", "views", "--test", "pages", "--", *tests], target, tree)
    changed = run("git", "status", "--porcelain", "-uall", cwd=tree).splitlines()
    changed = {line[3:] for line in changed}
    assert changed == code | generated, f"changed {sorted(changed ^ (code | generated))} besides the lists, or not at all"

    fathom = target / "release" / "fathom"
    def ask(*words):
        return run(fathom, *words, cwd=work, env=ENVIRONMENT)

    (work / "log").write_text("recipe\nrecipe\n")
    for command in ("import", "export", "query"):
        expect(f"{command} --help", ask(command, "--help"))
    expect("record --help", ask("record", "--help"))
    ask("import", "log")
    expect("table syscalls", ask("query", "log.fathom", "SELECT syscall FROM syscalls WHERE call_reads(syscall)"))
    expect("table irqs", ask("query", "log.fathom", "DESCRIBE irqs"))
    expect("a rule", ask("query", "log.fathom", "SELECT rule FROM findings"))
    view = ask("query", "--format", "csv", "log.fathom", "FROM recipe")
    assert view.split() == ["calls", "2"], view
    expect("an exporter", ask("export", "log.fathom", "--format", NAME))
    shutil.rmtree(work)
    print(f"recipes: {len(DUMMIES)} followed in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    try:
        # Not below ROOT: Cargo would read both copies of its settings, and build everything again.
        with tempfile.TemporaryDirectory(prefix="fathom-recipes-") as tree:
            main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).absolute(), Path(tree))
    except AssertionError as problem:
        sys.exit(f"recipes: {problem}")
