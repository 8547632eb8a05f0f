"""Runs a part of a program of the corpus: `python3 corpus NAME run|setup|helper`."""

import sys

import correctness  # noqa: F401
import device  # noqa: F401
import moves  # noqa: F401
import names  # noqa: F401
import sharing  # noqa: F401
from corpus import PROGRAMS

name, part = sys.argv[1:]
if name == "list":
    print("\n".join(sorted(PROGRAMS)))
else:
    PROGRAMS[name].get(part, lambda: None)()
