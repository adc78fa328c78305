"""References of new file tables on every database, and files to track."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from reference_stores import REFERENCE_DATABASES, ReferenceDatabase, make_file

from fake_clock import FakeClock
from headwater.files import FileReferenceStore, TrackedFile
from tiers import long_but_for


@pytest.fixture(scope="session", params=long_but_for({"sqlite"}, REFERENCE_DATABASES))
def reference_database(request: pytest.FixtureRequest) -> Iterator[ReferenceDatabase]:
    """Each database in turn, for all tests of this process."""
    database = REFERENCE_DATABASES[request.param](request)
    yield database
    database.close()


@pytest.fixture
def clock(reference_database: ReferenceDatabase) -> FakeClock:
    """The clock that stamps the references."""
    return reference_database.clock


@pytest.fixture
def references(reference_database: ReferenceDatabase) -> FileReferenceStore:
    """Those of a new file table."""
    return reference_database.make_table()


@pytest.fixture
def track(references: FileReferenceStore) -> Callable[..., TrackedFile]:
    """Track a file with references of these partitions, ten rows each."""

    def track(filename: str, *partitions: str) -> TrackedFile:
        references.add_files([make_file(filename, *partitions)])
        return make_file(filename, *partitions)

    return track
