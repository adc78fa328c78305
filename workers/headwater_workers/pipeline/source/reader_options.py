"""The options of the data source, and the store that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater.store import Store, as_count, open_store, parse_url
from headwater_workers.pipeline.source.pushdown import asked_for
from headwater_workers.pipeline.source.source_columns import TABLES, SourceColumn, chosen

OPTIONS: dict[str, str] = {
    "table": "which table; without it, the path given to `load()` is taken",
    "url": "the store's URL. Spark masks an option of this name in plans; without it the environment's `HEADWATER_STORE` is taken",
    "store": "the same for a URL without a password: Spark shows an option of this name",
    "realm": "one realm only",
    "catalog": "one catalog only",
    "at": "the state of this branch, tag or commit, of each catalog, instead of those of all branches and tags",
    "ref": "one branch or tag only, of each catalog",
    "prefix": "only keys that begin with this text, such as `sales.`",
    "pushdown": "`true` lets a query's conditions spare reading, in a data frame that is read once ([why](#what-is-read-for-a-query))",
    "columns": "the columns wanted, separated by commas: others are not made",
    "partitions": "how many tasks read, at most; default 8",
}
_PARTITIONS = 8


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The checked options of one read.

    url           the store's URL with its secrets, as executors can open it
    pushdown      the data frame is read once, and its conditions may reduce reading
    """

    url: str = field(repr=False)
    table: str
    columns: tuple[SourceColumn, ...]
    realm: str | None = None
    catalog: str | None = None
    at: str | None = None
    ref: str | None = None
    prefix: str | None = None
    pushdown: bool = False
    partitions: int = _PARTITIONS


def request_of(options: Mapping[str, str]) -> ReadRequest:
    """The options, checked.

    raises        RefusedError that says what is wrong and what would be right, without the URL's secrets
    """
    given = {name.lower(): text for name, text in options.items()}
    table = given.pop("path", None) or given.get("table", "")
    unknown = sorted(set(given) - set(OPTIONS))
    if "provider" in unknown:  # the options that Spark adds for a table that it keeps, and only those
        raise RefusedError(
            "the data source headwater is read, and is no table of Spark's own: make a view of it instead, by"
            " CREATE TEMPORARY VIEW ... USING headwater OPTIONS (...)"
        )
    if unknown:
        raise RefusedError(
            f"the data source headwater has no option {', '.join(unknown)}: its options are {', '.join(OPTIONS)}"
        )
    if table not in TABLES or given.get("table", table) != table:
        raise RefusedError(
            f"the data source headwater has no table {table!r}: set the option table to one of {', '.join(TABLES)}"
        )
    request = ReadRequest(
        url=shareable_url(given),
        table=table,
        columns=chosen(table, [name.strip() for name in given.get("columns", "").split(",") if name.strip()]),
        realm=given.get("realm"),
        catalog=given.get("catalog"),
        at=given.get("at"),
        ref=given.get("ref"),
        prefix=given.get("prefix"),
        pushdown=read_truth(given.get("pushdown", "false")),
        partitions=partition_count(given.get("partitions")),
    )
    if request.at is not None and not TABLES[table].has_states:
        raise RefusedError(f"table {table} is read as it is now: leave the option at away")
    if request.ref is not None and (request.at is not None or not TABLES[table].has_states):
        raise RefusedError(
            f"table {table} is read {'as it is now' if request.at is None else 'at one state'}: leave the option ref away"
        )
    asked_for(table, prefix=request.prefix)
    if request.catalog is not None and table == "objects":
        raise RefusedError("catalogs share objects: leave the option catalog away for table objects")
    return request


def open_for_reading(url: str) -> Store:
    """Open the store with the settings of this process's environment. A reader leases no node.

    raises        as ``open_store`` does
    """
    return open_store(url, settings=Settings.from_environment(), create=False)


def shareable_url(given: Mapping[str, str]) -> str:
    """The store's URL in a form that works elsewhere on this machine or, unless it is a file, on others.

    raises        RefusedError for a store that other processes cannot open, and for a file that is not there
    """
    if "url" in given and "store" in given:
        raise RefusedError("the options url and store both name the store: set one of them")
    text = given.get("url") or given.get("store") or Settings.from_environment().store
    parsed = parse_url(text)
    if "store" in given and parsed.password is not None:
        raise RefusedError(
            f"the option store ({parsed.shown}) has a password, which Spark would show in plans: set the option url instead, or"
            " HEADWATER_STORE in the environment"
        )
    if parsed.scheme == "memory":
        raise RefusedError("memory:// lives in one process, and Spark reads from others: use sqlite, postgresql or mongodb")
    if parsed.scheme != "sqlite":
        return text
    file = Path(parsed.path).absolute()
    if parsed.path and not file.is_file():
        raise RefusedError(f"there is no store in {file}: name a file that is there, on every machine that Spark reads from")
    query = text.partition("?")[2]
    return f"sqlite:///{quote(str(file))}{'?' if query else ''}{query}"


def read_truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise RefusedError(f"the option pushdown is {text!r}: set it to true or false")
    return text.lower() == "true"


def partition_count(text: str | None) -> int:
    try:
        return _PARTITIONS if text is None else as_count(text)
    except ValueError as fault:
        raise RefusedError(f"the option partitions: {fault}") from fault
