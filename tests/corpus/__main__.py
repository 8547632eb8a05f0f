"""Runs a part of a program of the corpus: `python3 corpus NAME run|setup|helper`."""

import os
import sys

import applications  # noqa: F401
import correctness  # noqa: F401
import device  # noqa: F401
import moves  # noqa: F401
import names  # noqa: F401
import sharing  # noqa: F401
from corpus import PROGRAMS

try:
    # What else runs on the machine is not the programs' matter.
    os.nice(-15)
except PermissionError:
    pass
name, part = sys.argv[1:]
if name == "list":
    print("\n".join(sorted(PROGRAMS)))
else:
    PROGRAMS[name].get(part, lambda: None)()
