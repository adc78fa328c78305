"""Rows of file tables from Parquet files, and the engine that does the work on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

from headwater.api.spark_access import FILE_WORK, load_spark
from headwater.errors import ExpiredError, NotFoundError, RefusedError
from headwater.files import CompactionReport, CompactionRules
from headwater.files.data_storage import open_data_file
from headwater.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS = 65_536
_GROUP = "headwater.file_work"


class FileWork(Protocol):
    """What an entry point of that group makes of settings: ingests and compactions of file tables by an engine of its own."""

    def ingest_files(self, realm: str, name: str, locations: Sequence[str], *, request: str = "") -> None: ...

    def compact_table(self, realm: str, name: str, rules: CompactionRules) -> CompactionReport: ...


def load_file_work(settings: Settings) -> FileWork:
    """What the pipeline's package brings; raises RefusedError where it is not installed, or Spark cannot run here."""
    return cast(FileWork, load_spark(FILE_WORK, group=_GROUP)(settings))


def read_parquet_rows(locations: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """The rows of Parquet files; raises RefusedError for another file, NotFoundError for none."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    for location in locations:
        with _open_input(location) as source:
            try:
                file = ParquetFile(source)
            except pa.ArrowInvalid as fault:
                raise RefusedError(f"{location} is no Parquet file: {fault}") from fault
            with file:
                yield from file.iter_batches(batch_size=_BATCH_ROWS)


@contextmanager
def _open_input(location: str) -> Iterator[Any]:
    with ExitStack() as opened:
        try:
            source = opened.enter_context(open_data_file(location))
        except ExpiredError as missing:  # it says so of a file of a table
            raise NotFoundError(f"there is no file {location}") from missing
        yield source
