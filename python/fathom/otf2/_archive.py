"""An archive of OTF2 by the library's own functions, which the package `_otf2` has as they are in C.

The package `otf2` above it is not used to write: it takes the time of day of its first event, and
keeps a buffer for each thread until the end.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from .._program import FathomError

try:
    import _otf2 as lib
except ImportError as error:
    raise FathomError(
        "the Python bindings of OTF2 are missing; install Debian's package python3-otf2, or fathom[otf2]"
    ) from error

ArchiveError = lib.ErrorCodes.Error
NONE = 0xFFFFFFFF
UNDEFINED = 0xFFFFFFFFFFFFFFFF
TICKS_PER_SECOND = 1_000_000_000
_CHUNK = 1 << 18
_DEFINITIONS_CHUNK = 1 << 22


class Archive:
    """A new archive in a directory that is there and empty."""

    def __init__(self, directory: Path) -> None:
        self._handle = lib.Archive_Open(
            os.fspath(directory),
            "traces",
            lib.FILEMODE_WRITE,
            _CHUNK,
            _DEFINITIONS_CHUNK,
            lib.SUBSTRATE_POSIX,
            lib.COMPRESSION_NONE,
        )
        # The library calls it, so it has to stay.
        self._callbacks = lib.FlushCallbacks(
            pre_flush=lambda *_: lib.FLUSH, post_flush=None
        )
        lib.Archive_SetFlushCallbacks(self._handle, self._callbacks, None)
        lib.Archive_SetSerialCollectiveCallbacks(self._handle)
        lib.Archive_OpenDefFiles(self._handle)
        lib.Archive_OpenEvtFiles(self._handle)

    def describe(self, creator: str, description: str, machine: str) -> None:
        lib.Archive_SetCreator(self._handle, _text(creator))
        lib.Archive_SetDescription(self._handle, _text(description))
        lib.Archive_SetMachineName(self._handle, _text(machine))

    def set_property(self, name: str, value: object) -> None:
        """A fact about the trace: `name` consists of capitals and underscores."""
        lib.Archive_SetProperty(self._handle, f"FATHOM::{name}", _text(str(value)), True)

    def location(self, number: int) -> Events:
        """The events of a thread. One thread at a time is written."""
        return Events(self._handle, number)

    def close(self, define: Callable[[Definitions], None]) -> None:
        """Writes the definitions and ends."""
        lib.Archive_CloseEvtFiles(self._handle)
        lib.Archive_CloseDefFiles(self._handle)
        writer = lib.Archive_GetGlobalDefWriter(self._handle)
        define(Definitions(writer))
        lib.Archive_CloseGlobalDefWriter(self._handle, writer)
        lib.Archive_Close(self._handle)


class Events:
    """Events of one thread, which are written in order of time."""

    def __init__(self, archive: Any, number: int) -> None:
        self._archive = archive
        # Readers miss it otherwise.
        self._definitions = lib.Archive_GetDefWriter(archive, number)
        self._handle = lib.Archive_GetEvtWriter(archive, number)
        self._attributes = lib.AttributeList_New()
        self.written = 0

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        lib.AttributeList_Delete(self._attributes)
        lib.Archive_CloseDefWriter(self._archive, self._definitions)
        lib.Archive_CloseEvtWriter(self._archive, self._handle)

    def enter(self, at: int, region: int) -> None:
        self.written += 1
        lib.EvtWriter_Enter(self._handle, None, at, region)

    def leave(self, at: int, region: int) -> None:
        self.written += 1
        lib.EvtWriter_Leave(self._handle, None, at, region)

    def create(self, at: int, handle: int, mode: Any, creation: Any, status: Any) -> None:
        self.written += 1
        lib.EvtWriter_IoCreateHandle(self._handle, None, at, handle, mode, creation, status)

    def duplicate(self, at: int, old: int, new: int) -> None:
        self.written += 1
        lib.EvtWriter_IoDuplicateHandle(
            self._handle, None, at, old, new, lib.IO_STATUS_FLAG_NONE
        )

    def destroy(self, at: int, handle: int) -> None:
        self.written += 1
        lib.EvtWriter_IoDestroyHandle(self._handle, None, at, handle)

    def begin(
        self, at: int, handle: int, mode: Any, flags: Any, size: int, number: int, offset: int | None
    ) -> None:
        """An operation begins; `offset` is attribute 0."""
        self.written += 1
        attributes = None
        if offset is not None and offset >= 0:
            # Writing the event empties the list.
            attributes = self._attributes
            lib.AttributeList_AddUint64(attributes, 0, offset)
        lib.EvtWriter_IoOperationBegin(
            self._handle, attributes, at, handle, mode, flags, size, number
        )

    def issued(self, at: int, handle: int, number: int) -> None:
        self.written += 1
        lib.EvtWriter_IoOperationIssued(self._handle, None, at, handle, number)

    def complete(self, at: int, handle: int, moved: int, number: int) -> None:
        self.written += 1
        lib.EvtWriter_IoOperationComplete(self._handle, None, at, handle, moved, number)


class Definitions:
    """What events refer to by number."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._strings: dict[str, int] = {}
        self._written = 0
        self.word("")

    def word(self, text: str) -> int:
        """A string that many definitions have: its number is remembered."""
        number = self._strings.get(text)
        if number is None:
            number = self._strings[text] = self.text(text)
        return number

    def text(self, text: str) -> int:
        """A string."""
        number = self._written
        self._written += 1
        lib.GlobalDefWriter_WriteString(self._writer, number, _text(text))
        return number

    def clock(self, first: int, length: int, first_realtime_ns: int) -> None:
        lib.GlobalDefWriter_WriteClockProperties(
            self._writer, TICKS_PER_SECOND, first, length, first_realtime_ns
        )

    def machine(self, name: str) -> None:
        """Node 0 of the system's tree."""
        lib.GlobalDefWriter_WriteSystemTreeNode(
            self._writer, 0, self.text(name), self.word("machine"), NONE
        )
        lib.GlobalDefWriter_WriteSystemTreeNodeDomain(
            self._writer, 0, lib.SYSTEM_TREE_DOMAIN_MACHINE
        )

    def process(self, number: int, name: str) -> None:
        lib.GlobalDefWriter_WriteLocationGroup(
            self._writer, number, self.text(name), lib.LOCATION_GROUP_TYPE_PROCESS, 0, NONE
        )

    def thread(self, number: int, name: str, events: int, process: int) -> None:
        lib.GlobalDefWriter_WriteLocation(
            self._writer, number, self.text(name), lib.LOCATION_TYPE_CPU_THREAD, events, process
        )

    def region(self, number: int, name: str, about: str, role: Any, paradigm: Any) -> None:
        text = self.text(name)
        lib.GlobalDefWriter_WriteRegion(
            self._writer,
            number,
            text,
            text,
            self.word(about),
            role,
            paradigm,
            lib.REGION_FLAG_NONE,
            self.word(""),
            0,
            0,
        )

    def attribute(self, number: int, name: str, about: str) -> None:
        """An attribute of events that is a number."""
        lib.GlobalDefWriter_WriteAttribute(
            self._writer, number, self.text(name), self.text(about), lib.TYPE_UINT64
        )

    def paradigm(self, number: int, identification: str, name: str, *, parallel: bool) -> None:
        of_os = identification == "POSIX"
        lib.GlobalDefWriter_WriteIoParadigm(
            self._writer,
            number,
            self.text(identification),
            self.text(name),
            lib.IO_PARADIGM_CLASS_PARALLEL if parallel else lib.IO_PARADIGM_CLASS_SERIAL,
            lib.IO_PARADIGM_FLAG_OS if of_os else lib.IO_PARADIGM_FLAG_NONE,
            [],
            [],
            [],
        )

    def file(self, number: int, name: str, *, directory: bool) -> None:
        write = lib.GlobalDefWriter_WriteIoRegularFile
        if directory:
            write = lib.GlobalDefWriter_WriteIoDirectory
        write(self._writer, number, self.text(name), 0)

    def file_property(self, file: int, name: str, value: str) -> None:
        held = lib.AttributeValue()
        held.stringRef = self.text(value)
        lib.GlobalDefWriter_WriteIoFileProperty(
            self._writer, file, self.word(name), lib.TYPE_STRING, held
        )

    def handle(
        self, number: int, name: str, file: int, paradigm: int, parent: int | None, mode: Any
    ) -> None:
        """`mode`: of a handle that was there before the recording."""
        flags = lib.IO_HANDLE_FLAG_NONE if mode is None else lib.IO_HANDLE_FLAG_PRE_CREATED
        lib.GlobalDefWriter_WriteIoHandle(
            self._writer,
            number,
            self.word(name),
            file,
            paradigm,
            flags,
            NONE,
            NONE if parent is None else parent,
        )
        if mode is not None:
            lib.GlobalDefWriter_WriteIoPreCreatedHandleState(
                self._writer, number, mode, lib.IO_STATUS_FLAG_NONE
            )


def _text(text: str) -> str:
    # Strings of C end there.
    return text.replace("\0", "\\0")
