"""The program fathom."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any


class FathomError(Exception):
    """An error of fathom: its message says what happened, to what, and what to do next."""


def program() -> str:
    """The path of the program.

    Raises FathomError if there is none.
    """
    path = os.environ.get("FATHOM") or shutil.which("fathom")
    if path is None:
        raise FathomError(
            "the program fathom is not in PATH; install it, or set the environment variable FATHOM "
            "to its path"
        )
    return path


def message(errors: bytes) -> str:
    """The messages on standard error as one text, without the name of the program."""
    lines = errors.decode(errors="replace").splitlines()
    return "\n".join(line.removeprefix("fathom: ") for line in lines).strip()


def run(*arguments: str | os.PathLike[str], good: tuple[int, ...] = (0,)) -> bytes:
    """Standard output of fathom with these arguments.

    Raises FathomError with its message if it ends with another status than those in `good`.
    """
    command = [program(), *map(os.fspath, arguments)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise FathomError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode not in good:
        raise FathomError(message(done.stderr) or f"fathom ended with status {done.returncode}")
    return done.stdout


def diagnose(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The diagnosis of a session, as `fathom diagnose --format json` prints it.

    Raises FathomError if the session cannot be read.
    """
    # 1: there are findings.
    return json.loads(run("diagnose", Path(path), "--format", "json", good=(0, 1)))


def report(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The report of a session, as `fathom report --format json` prints it.

    Raises FathomError if the session cannot be read.
    """
    return json.loads(run("report", Path(path), "--format", "json"))
