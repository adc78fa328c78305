"""The options of keeping file references on PostgreSQL, with what varies between runs: the same store, with other statements and tables.

Option 3 is the library's; with isolation ``as shipped`` also its isolation is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import cast

from benchmarks.dummy_references import DummyStatements
from benchmarks.reference_counts import CountStatements, count_tables
from benchmarks.reference_watch import AuditQuery

from headwater.clock import Clock, SystemClock
from headwater.files import FileReferenceStore, FileRequest, FileScope, SplitReference
from headwater.files.postgresql_file_tables import PostgresqlFileTables
from headwater.files.postgresql_references import PostgresqlReferences
from headwater.files.reference_rules import RequestVerdict
from headwater.files.reference_statements import ReferenceStatements
from headwater.files.sql_references import NOT_MARKED, RetryPolicy, SqlReferenceStore
from headwater.store import RealmKey, open_backend, parse_url
from headwater.store.backends.postgresql import PostgresqlBackend

__all__ = ["OPTIONS", "SHIPPED", "SHIPPED_OPTION", "ContenderReferences", "ContenderTables", "ReferenceOption", "Tuning"]

SHIPPED = "as shipped"
SCOPE = FileScope(RealmKey(1002), "00000000000000a1")
AUDIT_SECONDS = 0.05
ROWS_AN_AUDIT = 300_000
"""References that the auditor reads in a second at most: of a large table it takes fewer snapshots, or it would be half of the load."""


@dataclass(frozen=True)
class Tuning:
    isolation: str = SHIPPED
    attempts: int = 10


@dataclass(frozen=True)
class ReferenceOption:
    """One way of keeping references.

    salts               rows that a count is spread over; for option 1
    is_partition_first  whether the key of references is (partition, filename)
    looks_first         whether a commit reads what is there, decides and then writes, in a transaction of several statements; the
                        library does so only where its one statement finds a row that is not as it should be
    """

    number: int
    salts: int = 1
    is_partition_first: bool = False
    looks_first: bool = False

    @property
    def label(self) -> str:
        salt = f", salt {self.salts:,}" if self.salts > 1 else ""
        turned = ", key (partition, filename)" if self.is_partition_first else ""
        return f"{self.number}{salt}{turned}{', looking first' if self.looks_first else ''}"

    def turned(self) -> ReferenceOption:
        """The same with the other order of the key."""
        return replace(self, is_partition_first=not self.is_partition_first)

    def looking(self) -> ReferenceOption:
        return replace(self, looks_first=True)

    def open_store(self, url: str, tuning: Tuning) -> ContenderReferences:
        """The references of the scope, with one connection of their own, which is open; closing them closes it."""
        return self.open_tables(url, tuning).open_scope(SCOPE, policy_of(tuning))

    @contextmanager
    def create_store(self, url: str) -> Iterator[FileReferenceStore]:
        """The same after the tables and the scope were made; at the end no connection to the database is left."""
        tables = self.open_tables(url, Tuning())
        tables.create_option_tables()
        tables.create_scope(SCOPE)
        with closing(tables.open_scope(SCOPE, policy_of(Tuning()))) as store:
            yield store
        close_backends()

    def open_tables(self, url: str, tuning: Tuning) -> ContenderTables:
        return ContenderTables(self, backend_of(url), tuning)

    def statements(self, schema: str) -> ReferenceStatements:
        if self.number == 1:
            return CountStatements(schema, salts=self.salts)
        return DummyStatements(schema) if self.number == 2 else ReferenceStatements(schema)

    def audit_query(self, references: int, files: int, rows: int, input_rows: int) -> AuditQuery:
        """Violations at one moment: a leaf with some of a job's inputs or with inputs and output, rows that are lost or gained,
        references to files that are not tracked, marked files with references, and counts that are not those of the references.
        """
        refs = "(SELECT * FROM headwater.file_references WHERE part <> 'DUMMY') AS r"
        leaves = (
            f"SELECT count(*) FILTER (WHERE row_count = {input_rows}) AS inputs, count(*) FILTER (WHERE row_count <> {input_rows})"
            f" AS outputs FROM {refs} GROUP BY part"
        )
        rules = [
            f"(SELECT count(*) FROM ({leaves}) AS l WHERE NOT (inputs = {files} AND outputs = 0 OR inputs = 0 AND outputs = 1))",
            f"(SELECT (sum(row_count) <> {rows})::int FROM {refs})",
            *TRACKED_RULES[self.number],
        ]
        return AuditQuery(f"SELECT {' + '.join(rules)}", every_seconds=max(AUDIT_SECONDS, references / ROWS_AN_AUDIT))


TRACKED_RULES: dict[int, tuple[str, ...]] = {
    1: (
        "(SELECT count(*) FROM (SELECT filename, count(*) AS n FROM headwater.file_references GROUP BY 1) AS r FULL JOIN"
        " (SELECT filename, sum(count) AS n, min(marked) AS marked FROM headwater.file_counts GROUP BY 1) AS c USING (filename)"
        f" WHERE coalesce(r.n, 0) <> coalesce(c.n, -1) OR r.n > 0 AND c.marked < {NOT_MARKED})",
    ),
    2: (
        "(SELECT count(*) FROM (SELECT filename, count(*) FILTER (WHERE part = 'DUMMY') AS dummies, count(*) AS n,"
        " min(updated) FILTER (WHERE part = 'DUMMY') AS marked FROM headwater.file_references GROUP BY 1) AS r"
        f" WHERE dummies <> 1 OR n > 1 AND marked < {NOT_MARKED})",
    ),
    3: (
        "(SELECT count(*) FROM (SELECT DISTINCT filename FROM headwater.file_references) AS r"
        " LEFT JOIN headwater.tracked_files AS f USING (filename)"
        f" WHERE f.filename IS NULL OR f.marked < {NOT_MARKED})",
    ),
}


class ContenderTables(PostgresqlFileTables):
    """The tables of one option over a single connection."""

    def __init__(
        self,
        option: ReferenceOption,
        backend: PostgresqlBackend,
        tuning: Tuning,
        *,
        clock: Clock | None = None,
        connections: int = 1,
    ) -> None:
        level = {} if tuning.isolation == SHIPPED else {"isolation": tuning.isolation.lower()}
        super().__init__(backend, clock or SystemClock(), connections=connections, **level)
        self.option = option

    def create_option_tables(self) -> None:
        """What the option has beside the library's tables; nothing happens when it is there."""
        with self.borrowed("make an option's tables", writes=False) as connection:
            if self.option.number == 1:
                connection.execute(count_tables(self.schema).encode())
            if self.option.is_partition_first:
                references = f'"{self.schema}".file_references'
                turned = "DROP CONSTRAINT file_references_pkey, ADD PRIMARY KEY (scope, part, filename)"
                connection.execute(f"ALTER TABLE {references} {turned}".encode())

    def open_scope(self, scope: FileScope, policy: RetryPolicy) -> ContenderReferences:
        return ContenderReferences(self, scope, policy=policy)


class ContenderReferences(PostgresqlReferences):
    """The library's references with the statements of an option. Closing them closes the connections."""

    def __init__(self, tables: ContenderTables, scope: FileScope, *, policy: RetryPolicy) -> None:
        super().__init__(tables, scope, policy=policy)
        self._sql = tables.option.statements(tables.schema)
        self.tables = tables

    def _apply(self, what: str, requests: Sequence[FileRequest], *, is_whole: bool = False) -> list[RequestVerdict]:
        # Option 1 lowers and raises one row's count for a split, which a single statement cannot do.
        option = self.tables.option
        is_split = any(isinstance(request, SplitReference) for request in requests)
        if option.looks_first or (option.number == 1 and is_split):
            return SqlReferenceStore._apply(self, what, requests, is_whole=is_whole)
        return super()._apply(what, requests, is_whole=is_whole)

    @property
    def paused_seconds(self) -> float:
        """How long it waited between attempts."""
        return self._policy.sleep.seconds if isinstance(self._policy.sleep, CountedSleep) else 0.0

    def close(self) -> None:
        self.tables.close()


class CountedSleep:
    """Sleeps, and says how long in all."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, seconds: float) -> None:
        self.seconds += seconds
        time.sleep(seconds)


def policy_of(tuning: Tuning) -> RetryPolicy:
    return RetryPolicy(sleep=CountedSleep(), attempts=tuning.attempts)


_backends: dict[str, PostgresqlBackend] = {}
_backends_lock = threading.Lock()


def backend_of(url: str) -> PostgresqlBackend:
    """What opens connections to a database: one for all workers of a process, and only of the database that was asked for last."""
    with _backends_lock:
        if url not in _backends:
            close_backends()
            _backends[url] = cast(PostgresqlBackend, open_backend(parse_url(url)))
        return _backends[url]


def close_backends() -> None:
    while _backends:
        _backends.popitem()[1].close()


OPTIONS = (
    ReferenceOption(1),
    ReferenceOption(1, salts=128),
    ReferenceOption(1, salts=1024),
    ReferenceOption(2),
    ReferenceOption(3),
)
SHIPPED_OPTION = ReferenceOption(3)
