"""The options of the format ``headwater-files``, and the file table that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from headwater.errors import RefusedError
from headwater.files import ALL_KEYS, FileTable, RowKeyRange, RowKeyType, open_file_references, open_file_table
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import Store, open_store
from headwater_workers.pipeline.source.reader_options import partition_count, read_truth, shareable_url

FILE_OPTIONS: dict[str, str] = {
    "table": "the file table; without it, the path given to `load()` or `save()` is taken",
    "realm": "its realm",
    "url": "the store's URL. Spark masks an option of this name in plans; without it the environment's `HEADWATER_STORE` is taken",
    "store": "the same for a URL without a password: Spark shows an option of this name",
    "from": "read: only rows whose key is this or greater; a binary key in hex digits",
    "below": "read: only rows whose key is less than this",
    "columns": "read: the columns wanted, separated by commas: others are not read",
    "pushdown": "read: `true` lets a query's conditions on the key spare reading, in a data frame that is read once",
    "partitions": "read: how many tasks read, at most; default 8",
    "request": "write: a name for this ingest, such as the day of its data: a second one of the same name changes nothing",
}


@dataclass(frozen=True, slots=True)
class FileRequestOptions:
    """The checked options of one read or write.

    url           the store's URL with its secrets, as executors can open it
    first, below  the range of keys, as a person wrote it
    """

    url: str = field(repr=False)
    realm: str
    table: str
    columns: tuple[str, ...] = ()
    first: str | None = None
    below: str | None = None
    pushdown: bool = False
    partitions: int = 8
    request: str = ""

    def key_range(self, key_type: RowKeyType) -> RowKeyRange:
        """The range of keys; raises RefusedError for a text that is no key of this type."""
        low, high = (
            None if text is None else key_type.encode_key(key_type.parse_key(text)) for text in (self.first, self.below)
        )
        return RowKeyRange(low, high) if low is not None or high is not None else ALL_KEYS


def file_options_of(options: Mapping[str, str]) -> FileRequestOptions:
    """The options, checked.

    raises        RefusedError that says what is wrong and what would be right, without the URL's secrets
    """
    given = {name.lower(): text for name, text in options.items()}
    table = given.pop("path", None) or given.get("table", "")
    if unknown := sorted(set(given) - set(FILE_OPTIONS)):
        raise RefusedError(
            f"the format headwater-files has no option {', '.join(unknown)}: its options are {', '.join(FILE_OPTIONS)}"
        )
    if given.get("table", table) != table:
        raise RefusedError(f"the path names file table {table!r}, and the option table {given['table']!r}: name one")
    for name, value in (("realm", given.get("realm")), ("table", table)):
        if not value:
            raise RefusedError(f"the format headwater-files needs the option {name}")
    return FileRequestOptions(
        url=shareable_url(given),
        realm=given["realm"],
        table=table,
        columns=tuple(name.strip() for name in given.get("columns", "").split(",") if name.strip()),
        first=given.get("from"),
        below=given.get("below"),
        pushdown=read_truth(given.get("pushdown", "false")),
        partitions=partition_count(given.get("partitions")),
        request=given.get("request", ""),
    )


@contextmanager
def file_table_at(url: str, realm: str, name: str) -> Iterator[FileTable]:
    """Open a file table in this process, with the settings of its environment; raises NotFoundError, RefusedError."""
    with (
        open_store(url, settings=Settings.from_environment(), create=False) as store,
        file_table_in(store, realm, name) as table,
    ):
        yield table


@contextmanager
def file_table_in(store: Store, realm: str, name: str) -> Iterator[FileTable]:
    """A file table of an open store."""
    rows = RealmRegistry(store).open_realm(realm)
    with open_file_table(rows, name, lambda scope: open_file_references(store, scope)) as table:
        yield table
