"""Iceberg tables, by PyIceberg."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, GreaterThanOrEqual, In
from pyiceberg.io.pyarrow import (
    UnsupportedPyArrowTypeException,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, NestedField, StringType

from .._program import FathomError
from .._schema import TABLES
from ._lake import LAYOUT_VERSION, OBJECTS, SESSIONS, Partition, UnfitError, UsageError
from ._round import Change, ConflictError, Stored

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyiceberg.catalog import Catalog

_EPOCH = datetime.date(1970, 1, 1)
# Values come from the partition, because files do not have these columns.
_COLUMNS = Schema(
    NestedField(1, "date", DateType(), doc="Day on which the recording started, UTC."),
    NestedField(2, "host", StringType(), doc="Name of the host."),
    NestedField(3, "session", StringType(), doc="Id of the session."),
)
_SPEC = PartitionSpec(
    *(
        PartitionField(column.field_id, 999 + column.field_id, IdentityTransform(), column.name)
        for column in _COLUMNS.fields
    )
)
# Tables of later versions of fathom are known by it.
_LAYOUT = "fathom.layout-version"
_PROPERTIES = {
    _LAYOUT: str(LAYOUT_VERSION),
    # Each commit writes the whole metadata of a table.
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX: "20",
}
# It warns of columns without statistics, such as lists, in every file.
logging.getLogger("pyiceberg.io.pyarrow").setLevel(logging.ERROR)


class Tables:
    """The tables of sessions in a namespace of a catalog."""

    def __init__(self, catalog: Catalog, namespace: str) -> None:
        """Makes the namespace if it is not there."""
        self._catalog = catalog
        self._namespace = namespace
        # None: it was not there.
        self._loaded: dict[str, Table | None] = {}
        self._admitted: dict[str, list[pyarrow.Schema]] = {}
        if not catalog.namespace_exists(namespace):
            try:
                catalog.create_namespace_if_not_exists(namespace)
            except Exception:
                # SQL catalogs fail if another committer makes it at the same time.
                if not catalog.namespace_exists(namespace):
                    raise

    def begin(self) -> None:
        """Begins an attempt: tables are loaded again."""
        self._loaded.clear()
        self._admitted.clear()

    def names(self) -> set[str]:
        """Tables of fathom that are there."""
        there = {identifier[-1] for identifier in self._catalog.list_tables(self._namespace)}
        known = there & {*TABLES, SESSIONS, OBJECTS}
        return known | {name for name in there - known if self._is_of_fathom(name)}

    def files(self, table: str, since: datetime.date | None) -> dict[Partition, set[str]]:
        """The locations of a table's files by session; none if the table is not there."""
        found: dict[Partition, set[str]] = {}
        self.load([table])
        loaded = self._loaded[table]
        if loaded is None:
            return found
        rows = AlwaysTrue() if since is None else GreaterThanOrEqual("date", since.isoformat())
        for partition, file in _files(loaded, rows):
            found.setdefault(partition, set()).add(file.file_path)
        return found

    def load(self, names: Iterable[str]) -> None:
        """Loads tables that this attempt has not loaded."""
        for name in names:
            if name not in self._loaded:
                try:
                    self._loaded[name] = self._load(name)
                except NoSuchTableError:
                    self._loaded[name] = None

    def admit(self, footers: Mapping[str, Sequence[FileMetaData]]) -> None:
        """Makes the tables of these files of a session that are not there.

        Raises UnfitError if a table cannot have the columns of a file, and makes none.
        """
        self.load(footers)
        admitted: dict[str, list[pyarrow.Schema]] = {}
        made: dict[str, Transaction] = {}
        for name, files in footers.items():
            before = self._admitted.get(name, [])
            distinct = _distinct(files, before)
            if len(distinct) == len(before):
                continue
            if self._loaded[name] is None:
                made[name] = self._made(name)
                _fit(name, made[name], distinct, files)
            else:
                _fit(name, self._existing(name).transaction(), distinct, files)
            admitted[name] = distinct
        for name, change in made.items():
            self._make(name, change)
            # Another committer may have made it, with other columns.
            _fit(name, self._existing(name).transaction(), admitted[name], footers[name])
        self._admitted.update(admitted)

    def equalize(
        self, table: str, wanted: Mapping[Partition, Sequence[Stored]], *, always: bool
    ) -> Change:
        """Makes these files, and no others, the files of these sessions, by one snapshot. Makes an
        empty snapshot if the files are right and `always` is set.

        Raises ConflictError if another program has changed the table since it was loaded.
        """
        if self._loaded[table] is None and not any(wanted.values()):
            return Change()
        try:
            return self._equalize(self._existing(table), wanted, always)
        except (
            CommitFailedException,
            # The next look shows whether it took place.
            CommitStateUnknownException,
            NoSuchTableError,
            ValidationException,
        ) as error:
            raise ConflictError from error

    def _is_of_fathom(self, name: str) -> bool:
        try:
            return _LAYOUT in self._catalog.load_table((self._namespace, name)).properties
        except NoSuchTableError:
            return False

    def _existing(self, name: str) -> Table:
        table = self._loaded[name]
        if table is None:
            raise FathomError(
                f"table {self._namespace}.{name} is not there: another program has removed it, or "
                "something else has its name; run it again, or choose another --namespace"
            )
        return table

    def _made(self, name: str) -> Transaction:
        """A table that is not in the catalog before it is committed."""
        try:
            return self._catalog.create_table_transaction(
                (self._namespace, name), _COLUMNS, partition_spec=_SPEC, properties=_PROPERTIES
            )
        except ValueError as error:
            raise UsageError(
                f"cannot make table {self._namespace}.{name}: {error}; set the catalog's warehouse"
            ) from error

    def _make(self, name: str, change: Transaction) -> None:
        # Files have no ids of columns.
        names = change.table_metadata.schema().name_mapping.model_dump_json()
        change.set_properties({TableProperties.DEFAULT_NAME_MAPPING: names})
        try:
            change.commit_transaction()
        except (TableAlreadyExistsError, CommitFailedException):
            # Another committer was faster. If it was not, `_existing` says so.
            pass
        del self._loaded[name]
        self.load([name])
        table = self._loaded[name]
        if table is not None and table.current_snapshot() is not None:
            # What this attempt knows is from the time before.
            raise ConflictError

    def _load(self, name: str) -> Table:
        table = self._catalog.load_table((self._namespace, name))
        spec = table.spec()
        names = {
            table.schema().find_column_name(field.source_id)
            for field in spec.fields
            if isinstance(field.transform, IdentityTransform)
        }
        if names != set(_COLUMNS.column_names) or len(spec.fields) != len(names):
            raise FathomError(
                f"table {self._namespace}.{name} is not partitioned by date, host, and session; "
                "give it these partitions again, or choose another --namespace"
            )
        return table

    def _equalize(
        self, table: Table, wanted: Mapping[Partition, Sequence[Stored]], always: bool
    ) -> Change:
        # PyIceberg would repeat a refused commit on top of the one that came before it, which may
        # have added the same files. This copy is not written.
        properties = {**table.metadata.properties, TableProperties.COMMIT_NUM_RETRIES: "0"}
        table.metadata = table.metadata.model_copy(update={"properties": properties})
        ids = In("session", {partition.session for partition in wanted})
        there = {
            file.file_path: file for partition, file in _files(table, ids) if partition in wanted
        }
        kept = {stored.location for files in wanted.values() for stored in files}
        dropped = [file for location, file in there.items() if location not in kept]
        added = [
            (partition, stored)
            for partition, files in wanted.items()
            for stored in files
            if stored.location not in there
        ]
        if not added and not dropped and not always:
            return Change()
        with table.transaction() as change:
            _unite(change, _distinct([stored.footer for _, stored in added]))
            snapshot = change.update_snapshot()
            with snapshot.overwrite() if dropped else snapshot.merge_append() as files:
                for file in dropped:
                    files.delete_data_file(file)
                for partition, stored in added:
                    files.append_data_file(_data_file(change.table_metadata, partition, stored))
        rows = sum(stored.footer.num_rows for _, stored in added)
        return Change(len(added), len(dropped), rows)


def _files(table: Table, rows: BooleanExpression) -> Iterator[tuple[Partition, DataFile]]:
    """The files in which such rows can be, with their sessions."""
    specs = {}
    for number, spec in table.specs().items():
        columns = [table.schema().find_column_name(field.source_id) for field in spec.fields]
        places = [
            columns.index(name) if name in columns else None for name in _COLUMNS.column_names
        ]
        specs[number] = places
    for task in table.scan(row_filter=rows).plan_files():
        values = [
            None if place is None else task.file.partition[place]
            for place in specs[task.file.spec_id]
        ]
        date, host, session = values
        if date is None or session is None:
            raise FathomError(
                f"{task.file.file_path} of table {'.'.join(table.name())} belongs to no session; "
                "rewrite the table with partitions date, host, and session"
            )
        if isinstance(date, int):
            date = _EPOCH + datetime.timedelta(days=date)
        yield Partition(date, host, session), task.file


def _columns(footer: FileMetaData) -> pyarrow.Schema:
    """The columns of a file. Each is optional, because files of other versions may lack it."""
    fields = footer.schema.to_arrow_schema()
    return pyarrow.schema([field.with_nullable(True).remove_metadata() for field in fields])


def _distinct(
    footers: Sequence[FileMetaData], before: Sequence[pyarrow.Schema] = ()
) -> list[pyarrow.Schema]:
    """`before`, and the columns of the files that are not in it."""
    distinct = [*before]
    for footer in footers:
        columns = _columns(footer)
        if columns not in distinct:
            distinct.append(columns)
    return distinct


def _unite(change: Transaction, distinct: Sequence[pyarrow.Schema]) -> None:
    """Gives a table these columns."""
    for columns in distinct:
        with change.update_schema() as update:
            update.union_by_name(columns)


def _fit(
    name: str,
    change: Transaction,
    distinct: Sequence[pyarrow.Schema],
    footers: Sequence[FileMetaData],
) -> None:
    """Gives a table these columns, which the files have.

    Raises UnfitError if it cannot.
    """
    try:
        if any("." in column for columns in distinct for column in columns.names):
            raise ValueError("a name has a dot")
        _unite(change, distinct)
        for footer in footers:
            _ids(change.table_metadata.schema(), footer)
    except (ValidationError, UnsupportedPyArrowTypeException, LookupError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise UnfitError(
            f"table {name} cannot have its columns ({reason}); choose another --namespace for "
            "sessions of this version of fathom"
        ) from error


def _data_file(metadata: TableMetadata, partition: Partition, stored: Stored) -> DataFile:
    schema = metadata.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=stored.footer,
        stats_columns=compute_statistics_plan(schema, metadata.properties),
        parquet_column_mapping=_ids(schema, stored.footer),
    )
    values = {
        "date": (partition.date - _EPOCH).days,
        "host": partition.host,
        "session": partition.session,
    }
    fields = metadata.spec().fields
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=stored.location,
        file_format=FileFormat.PARQUET,
        partition=Record(*(values[schema.find_column_name(one.source_id)] for one in fields)),
        file_size_in_bytes=stored.bytes,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _ids(schema: Schema, footer: FileMetaData) -> dict[str, int]:
    """Ids of a file's columns by their paths. Names of the inner parts of lists and maps differ
    between writers, their order does not."""
    ids = parquet_path_to_id_mapping(schema)
    inner: dict[str, list[int]] = {}
    for path, number in ids.items():
        inner.setdefault(path.split(".")[0], []).append(number)
    found: dict[str, int] = {}
    seen: dict[str, int] = {}
    for index in range(len(footer.schema)):
        path = footer.schema.column(index).path
        top = path.split(".")[0]
        found[path] = inner[top][seen.get(top, 0)]
        seen[top] = seen.get(top, 0) + 1
    return found
