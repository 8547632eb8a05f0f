"""Iceberg tables, by PyIceberg."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, GreaterThanOrEqual, In
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, NestedField, StringType

from .._program import FathomError
from .._schema import TABLES
from ._lake import OBJECTS, SESSIONS, Partition, UsageError
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
_PROPERTIES = {
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
        if not catalog.namespace_exists(namespace):
            try:
                catalog.create_namespace_if_not_exists(namespace)
            except Exception:
                # SQL catalogs fail if another committer makes it at the same time.
                if not catalog.namespace_exists(namespace):
                    raise

    def names(self) -> set[str]:
        """Tables of fathom that are there."""
        there = {identifier[-1] for identifier in self._catalog.list_tables(self._namespace)}
        return there & {*TABLES, SESSIONS, OBJECTS}

    def files(self, table: str, since: datetime.date | None) -> dict[Partition, set[str]]:
        """The locations of a table's files by session; none if the table is not there."""
        found: dict[Partition, set[str]] = {}
        try:
            loaded = self._load(table)
        except NoSuchTableError:
            return found
        rows = AlwaysTrue() if since is None else GreaterThanOrEqual("date", since.isoformat())
        for partition, file in _files(loaded, rows):
            found.setdefault(partition, set()).add(file.file_path)
        return found

    def create(self, table: str, footer: FileMetaData) -> None:
        """Makes a table with the columns of a file, unless it is there."""
        identifier = (self._namespace, table)
        try:
            with self._catalog.create_table_transaction(
                identifier, _COLUMNS, partition_spec=_SPEC, properties=_PROPERTIES
            ) as change:
                with change.update_schema() as update:
                    update.union_by_name(_columns(footer))
                # Files have no ids of columns.
                names = change.table_metadata.schema().name_mapping.model_dump_json()
                change.set_properties({TableProperties.DEFAULT_NAME_MAPPING: names})
        except (TableAlreadyExistsError, CommitFailedException):
            # Another committer was faster. If it was not, loading the table will say so.
            pass
        except ValueError as error:
            raise UsageError(
                f"cannot make table {self._namespace}.{table}: {error}; set the catalog's warehouse"
            ) from error

    def equalize(self, table: str, wanted: Mapping[Partition, Sequence[Stored]]) -> Change:
        """Makes these files, and no others, the files of these sessions, by one snapshot.

        Raises ConflictError if another program has changed the table in the meantime.
        """
        try:
            return self._equalize(self._load(table), wanted)
        except NoSuchTableError:
            if any(wanted.values()):
                raise
            return Change()
        except (
            CommitFailedException,
            # The next look shows whether it took place.
            CommitStateUnknownException,
            ValidationException,
        ) as error:
            raise ConflictError from error

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
        # PyIceberg would repeat a refused commit on top of the one that came before it, which may
        # have added the same files. This copy is not written.
        properties = {**table.metadata.properties, TableProperties.COMMIT_NUM_RETRIES: "0"}
        table.metadata = table.metadata.model_copy(update={"properties": properties})
        return table

    def _equalize(self, table: Table, wanted: Mapping[Partition, Sequence[Stored]]) -> Change:
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
        if not added and not dropped:
            return Change()
        with table.transaction() as change:
            with change.update_schema() as update:
                for columns in _distinct(added):
                    update.union_by_name(columns)
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


def _distinct(added: Sequence[tuple[Partition, Stored]]) -> list[pyarrow.Schema]:
    distinct: list[pyarrow.Schema] = []
    for _, stored in added:
        columns = _columns(stored.footer)
        if columns not in distinct:
            distinct.append(columns)
    return distinct


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
