"""The report of an import: a summary as a value, and a row for every table that it looked at; also as a Parquet file.

Only ``ParquetReport`` needs pyarrow, and only when it is opened.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from headwater.catalogs.content import ContentKey
from headwater.errors import RefusedError
from headwater.iceberg import QuarantinedTable, SurveyOutcome

ROWS_SHOWN = 100
"""How many quarantined tables a task's outcome lists; it always has the total."""


class ReportRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one table directory.

    outcome       ``imported``, ``updated``, ``unchanged`` or ``quarantined``; ``gone`` or ``dropped`` for a table that the survey did
                  not meet, because its metadata is gone
    code, message why it is quarantined; for others the message may say why they were left unchanged
    rule, evidence  how its latest metadata was chosen
    version       the format version
    commit        hash of the commit that imported, moved or dropped it; empty when nothing was written
    """

    key: tuple[str, ...]
    directory: str
    outcome: str
    code: str = ""
    message: str = ""
    kind: str = ""
    rule: str = ""
    evidence: tuple[str, ...] = ()
    metadata_location: str = ""
    uuid: str = ""
    version: int | None = None
    snapshot: int | None = None
    commit: str = ""


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of an import, done or simulated.

    surveyed      table directories that were looked at: imported + updated + unchanged + quarantined
    known         unchanged tables whose folder's latest metadata is not the branch's, but is known to the catalog, or was
                  written by a client of the catalog for a commit that did not happen
    gone          tables of the catalog whose metadata is gone, and that stay
    dropped       tables whose metadata is gone, dropped from the catalog because the import asks for it
    namespaces    the number of namespaces created
    rules         by rule, the number of tables whose latest metadata it chose
    commits       hashes, oldest first
    quarantined   the first ``ROWS_SHOWN`` of them, by directory
    reasons       by reason, the number of quarantined tables
    """

    dry_run: bool = False
    surveyed: int = 0
    imported: int = 0
    updated: int = 0
    unchanged: int = 0
    known: int = 0
    gone: int = 0
    dropped: int = 0
    namespaces: int = 0
    rules: dict[str, int] = {}
    commits: tuple[str, ...] = ()
    quarantined: tuple[QuarantinedTable, ...] = ()
    reasons: dict[str, int] = {}

    def codes(self) -> dict[str, int]:
        """The number of quarantined tables by reason code."""
        return dict(self.reasons)

    def outcome(self, *, limit: int = ROWS_SHOWN) -> dict[str, Any]:
        """The report as plain data for a task's outcome, with the first ``limit`` of the quarantined tables."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        shown = [
            {"table": ".".join(row.key), "code": str(row.code), "message": row.message} for row in self.quarantined[:limit]
        ]
        codes = plain.pop("reasons")
        return {
            "dryRun": plain.pop("dry_run"),
            **plain,
            "commits": {"total": len(self.commits), "shown": list(self.commits[-ROWS_SHOWN:])},
            "quarantined": {"total": sum(codes.values()), "codes": codes, "shown": shown},
        }


def outcome_key(outcome: SurveyOutcome) -> ContentKey | None:
    """The key of an outcome; None if its path makes no valid key."""
    try:
        return ContentKey(outcome.key)
    except RefusedError:
        return None


def report_row(outcome: SurveyOutcome, done: str, *, commit: str = "", message: str = "") -> ReportRow:
    """The row of a table that was not quarantined after the survey."""
    if isinstance(outcome, QuarantinedTable):
        return ReportRow(key=outcome.key, directory=outcome.directory, outcome=done, message=message)
    return ReportRow(
        key=outcome.key,
        directory=outcome.directory,
        outcome=done,
        message=message,
        kind=outcome.kind,
        rule=str(outcome.rule),
        evidence=outcome.evidence,
        metadata_location=outcome.metadata_location,
        uuid=outcome.uuid or "",
        version=outcome.format_version,
        snapshot=outcome.snapshot_id,
        commit=commit,
    )


def quarantined_row(outcome: SurveyOutcome, verdict: QuarantinedTable) -> ReportRow:
    """The row of a quarantined table; for a table that is sound by itself, with the survey's findings."""
    if isinstance(outcome, QuarantinedTable):
        return ReportRow(
            key=verdict.key, directory=verdict.directory, outcome="quarantined", code=str(verdict.code), message=verdict.message
        )
    row = report_row(outcome, "quarantined")
    return msgspec.structs.replace(row, code=str(verdict.code), message=verdict.message)


REPORT_COLUMNS = (
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
    ("rule", "string", "which rule chose its latest metadata"),
    ("evidence", "list<string>", "what the choice rests on, and what was verified"),
    ("metadata_location", "string", "the latest metadata"),
    ("uuid", "string", "of the table or view; empty where it has none"),
    ("version", "int32", "format version; null where that was not found out"),
    ("snapshot", "int64", "current snapshot; null where it has none"),
    ("commit", "string", "hash of the commit that brought it in, moved it or dropped it; empty when nothing was written"),
)
"""Name, type and meaning of each column. One row for each table folder that was looked at, by folder."""

_GROUP_ROWS = 10_000


class ParquetReport:
    """Writes rows as they come: ``with ParquetReport(file) as report: report.add_row(row)``."""

    def __init__(self, file: Path) -> None:
        """Open the report; raises RefusedError when pyarrow is missing."""
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
        self._schema = pyarrow.schema([(name, types[kind]) for name, kind, _ in REPORT_COLUMNS])
        self._file = pyarrow.parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[ReportRow] = []

    def __enter__(self) -> ParquetReport:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._flush()
        self._file.close()

    def add_row(self, row: ReportRow) -> None:
        self._rows.append(row)
        if len(self._rows) == _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        columns = {name: [getattr(row, name) for row in self._rows] for name, _, _ in REPORT_COLUMNS}
        self._file.write_table(self._arrow.table(columns, schema=self._schema))
        self._rows = []
