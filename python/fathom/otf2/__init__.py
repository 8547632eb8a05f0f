"""Sessions as traces in the Open Trace Format 2, which Vampir and other tools of HPC open.

    python -m fathom.otf2 run.fathom -o run.otf2

It needs the Python bindings of OTF2, Debian's package python3-otf2. docs/how-to/export.md says what a
trace contains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._trace import Written, write

__all__ = ["Written", "write"]


def __getattr__(name: str) -> Any:
    # They need the bindings.
    if name in __all__:
        from . import _trace

        return getattr(_trace, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
