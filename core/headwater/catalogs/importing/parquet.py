"""The report of an import as a Parquet file. The only module here that needs pyarrow, and only when it writes."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from headwater.catalogs.importing.reports import ReportRow
from headwater.errors import RefusedError

__all__ = ["COLUMNS", "ParquetReport"]

COLUMNS = (
    ("key", "list<string>", "elements of the content key; of a path that gives none, its folders"),
    ("directory", "string", "the table's folder"),
    (
        "outcome",
        "string",
        "imported, updated, unchanged or quarantined; gone or dropped, of a table whose metadata is gone",
    ),
    ("code", "string", "why it is quarantined, one word; else empty"),
    (
        "message",
        "string",
        "the same in words, with the file and what to do; of an unchanged or gone table, why it was left as it is; else empty",
    ),
    ("kind", "string", "table or view; empty where that was not found out"),
    ("rule", "string", "which rule told its latest metadata"),
    ("evidence", "list<string>", "what was seen when it was told, and what was verified"),
    ("metadata_location", "string", "the latest metadata"),
    ("uuid", "string", "of the table or view; empty where it has none"),
    ("version", "int32", "format version; null where that was not found out"),
    ("snapshot", "int64", "current snapshot; null where it has none"),
    ("commit", "string", "hash of the commit that brought it in, moved it or dropped it; empty when nothing was written"),
)
"""Name, type and meaning of each column. One row for each table folder that was looked at, by folder."""

_GROUP_ROWS = 10_000


class ParquetReport:
    """Writes rows as they come: ``with ParquetReport(file) as report: report.add(row)``."""

    def __init__(self, file: Path) -> None:
        """raises        RefusedError when pyarrow is missing"""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as fault:
            raise RefusedError("a report in Parquet needs pyarrow: install headwater[lake]") from fault
        types = {
            "string": pyarrow.string(),
            "list<string>": pyarrow.list_(pyarrow.string()),
            "int32": pyarrow.int32(),
            "int64": pyarrow.int64(),
        }
        self._arrow: Any = pyarrow
        self._schema = pyarrow.schema([(name, types[kind]) for name, kind, _ in COLUMNS])
        self._file = pyarrow.parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[ReportRow] = []

    def __enter__(self) -> ParquetReport:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._flush()
        self._file.close()

    def add(self, row: ReportRow) -> None:
        self._rows.append(row)
        if len(self._rows) == _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        columns = {name: [getattr(row, name) for row in self._rows] for name, _, _ in COLUMNS}
        self._file.write_table(self._arrow.table(columns, schema=self._schema))
        self._rows = []
