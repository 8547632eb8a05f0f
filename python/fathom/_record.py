"""Recording a block of the current process."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from . import _program
from ._session import Session

# Loading the programs into the kernel takes seconds on a busy machine.
_PATIENCE_S = 120.0


def record(
    output: str | os.PathLike[str],
    *,
    layers: Iterable[str] | str | None = None,
    syscalls: Iterable[str] | str | None = None,
    stacks: bool = False,
    force: bool = False,
    options: Iterable[str] = (),
) -> Recording:
    """Records the storage I/O of a block: of this process and of the children that it starts.

        with fathom.record("out.fathom") as recording:
            work()
        recording.session.by_file().df()

    `output` is the directory of the session, `force` replaces an existing one. `layers`,
    `syscalls`, and `stacks` are the options of `fathom record` with these names, and `options` any
    others of its options: `["--path", "/var/lib"]`. Needs the rights that `fathom record` needs.

    Entering the block waits until the recording has begun. Raises FathomError with the message of
    fathom if that fails.
    """
    arguments = ["--output", os.fspath(output)]
    if force:
        arguments.append("--force")
    if stacks:
        arguments.append("--stacks")
    for name, values in (("--layers", layers), ("--syscalls", syscalls)):
        if values is not None:
            values = [values] if isinstance(values, str) else list(values)
            arguments += [name, ",".join(values)]
    return Recording(Path(output), [*arguments, *options])


class Recording:
    """A block that is recorded; `fathom.record` makes it."""

    path: Path
    """Directory of the session."""

    def __init__(self, path: Path, arguments: list[str]) -> None:
        self.path = path
        self._arguments = arguments
        self._recorder: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    @property
    def session(self) -> Session:
        """The session, after the block or, as far as it is stored, in it."""
        return Session(self.path)

    def __enter__(self) -> Recording:
        command = [
            _program.program(), "record", "--quiet", "--pid", str(os.getpid()), "--children",
            *self._arguments,
        ]
        self._errors = tempfile.TemporaryFile()
        with (
            tempfile.TemporaryDirectory() as directory,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready,
        ):
            ready.bind(os.path.join(directory, "ready"))
            environment = {**os.environ, "NOTIFY_SOCKET": ready.getsockname()}
            try:
                self._recorder = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    env=environment,
                    # Ctrl-C at the terminal is for this program.
                    start_new_session=True,
                )
            except OSError as error:
                raise _program.FathomError(
                    f"cannot run {command[0]}: {error.strerror}"
                ) from error
            self._wait(ready)
        return self

    def _wait(self, ready: socket.socket) -> None:
        """Waits until the recording has begun."""
        assert self._recorder is not None
        end = os.pidfd_open(self._recorder.pid)
        try:
            readable = select.select([ready, end], [], [], _PATIENCE_S)[0]
        finally:
            os.close(end)
        if ready in readable:
            return
        if not readable:
            self._recorder.kill()
        self._fail(self._recorder.wait(), "the recording did not begin")

    def _fail(self, status: int, what: str) -> None:
        assert self._errors is not None
        self._errors.seek(0)
        text = _program.message(self._errors.read())
        self._errors.close()
        raise _program.FathomError(text or f"{what}: fathom ended with status {status}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._recorder is not None and self._errors is not None
        self._recorder.send_signal(signal.SIGINT)
        status = self._recorder.wait()
        if status != 0 and error is None:
            self._fail(status, "the recording failed")
        self._errors.close()
