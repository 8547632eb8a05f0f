"""The check of imports finds what it must: `python3 scripts/imports_test.py`."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import imports

RULES = """
[crates]
low:
high: low

[crates/high/src]
format:
write: format

[web/src]
api:
views/*: api

[cycles]
"""

FILES = {
    "crates/low/Cargo.toml": "[dependencies]\n",
    "crates/low/src/lib.rs": "mod one;\nmod two;\n",
    "crates/low/src/one.rs": "use super::two::Two;\n",
    "crates/low/src/two.rs": "",
    "crates/high/Cargo.toml": "[dependencies]\nfathom-low.workspace = true\n",
    "crates/high/src/lib.rs": "mod format;\nmod write;\npub use write::deep::{Deep};\n",
    "crates/high/src/format.rs": "// crate::write is not imported here\n",
    "crates/high/src/write/mod.rs": "mod deep;\nuse crate::{Error, format::{Name, Other}};\n",
    "crates/high/src/write/deep.rs": "use super::super::format;\nuse super::Sink;\n",
    "web/src/api/a.ts": "",
    "web/src/views/one/index.tsx": 'import { a } from "../../api/a";\n',
    "web/src/views/two/index.tsx": "",
}


class Imports(unittest.TestCase):
    def problems(self, rules=RULES, **files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**FILES, **files}.items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(imports.problems(Path(root), rules))

    def finds(self, problem, rules=RULES, **files):
        found = self.problems(rules, **files)
        self.assertEqual(len(found), 1, found)
        self.assertIn(problem, found[0])

    def test_allowed(self):
        self.assertEqual(self.problems(), [])

    def test_forbidden(self):
        for file, text, problem in [
            ("crates/low/Cargo.toml", "[dependencies]\nfathom-high = 1\n", "low must not import high"),
            ("crates/high/src/format.rs", "use crate::write::Sink;", "format must not import write"),
            ("crates/high/src/format.rs", "use crate::{Error, write::Sink};", "format must not import write"),
            ("crates/high/src/format.rs", "fn f() { super::write::f() }", "format must not import write"),
            ("crates/high/src/format.rs", "use crate::Deep;", "format must not import write"),
            ("crates/high/src/third.rs", "use crate::format;", "third is not listed"),
            ("web/src/api/a.ts", 'const v = import("../views/one");', "api must not import views/*"),
            ("web/src/views/two/index.tsx", 'import "../one";', "views/* must not import views/*"),
            ("crates/low/src/two.rs", "use crate::one::One;", "crates/low/src: one two import each other"),
        ]:
            with self.subTest(file=file, text=text):
                self.finds(problem, **{file: text})

    def test_only_for_tests(self):
        self.assertEqual(
            self.problems(
                **{
                    "crates/low/Cargo.toml": "[dev-dependencies]\nfathom-high = 1\n",
                    "crates/high/src/format.rs": "#[cfg(test)]\nmod tests {\n use crate::write::Sink;\n}\n",
                }
            ),
            [],
        )

    def test_no_longer_needed(self):
        self.finds("api is not imported any more", **{"web/src/views/one/index.tsx": ""})
        self.finds("gone: there is no such entry", RULES.replace("api:", "gone:\napi:"))
        self.finds("one two do not import each other", RULES + "low: one two\n")

    def test_order(self):
        self.finds("write must stand above it", RULES.replace("format:\n", "format: write\n"))


if __name__ == "__main__":
    unittest.main()
