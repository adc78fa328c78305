"""The options that the benchmarks hold against the library's, as databases for the contract."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import cast

import pytest

from backend_fixtures import STORES
from fake_clock import FakeClock
from headwater.files import FileReferenceStore, FileScope
from headwater.files.sql_references import RetryPolicy
from headwater.store import RealmKey, open_backend, parse_url
from headwater.store.backends.postgresql import PostgresqlBackend

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.reference_options import ContenderTables, ReferenceOption, Tuning

CONTENDERS = {
    "option 1": ReferenceOption(1),
    "option 1 with salt": ReferenceOption(1, salts=4),
    "option 2": ReferenceOption(2),
    "option 3 with the other key": ReferenceOption(3, is_partition_first=True),
}


class ContenderDatabase:
    """The tables of one option, in a schema of their own."""

    def __init__(self, option: ReferenceOption, request: pytest.FixtureRequest) -> None:
        self.clock = FakeClock()
        self._numbers = itertools.count(1)
        self._backend = cast(PostgresqlBackend, open_backend(parse_url(STORES["postgresql"](request))))
        self._tables = ContenderTables(option, self._backend, Tuning(), clock=self.clock, connections=8)
        self._tables.create_option_tables()

    def make_table(self) -> FileReferenceStore:
        scope = FileScope(RealmKey(7), f"{next(self._numbers):016x}")
        self._tables.create_scope(scope)
        return self._tables.open_scope(scope, RetryPolicy(sleep=self.clock.sleep))

    def close(self) -> None:
        self._tables.close()
        self._backend.close()
