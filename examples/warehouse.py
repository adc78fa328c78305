"""Make a small, real Iceberg warehouse to try Headwater on: ``python examples/warehouse.py [--append] DIR``.

Three namespaces with twelve tables, two to four snapshots each, written by pyiceberg; what a dropped table left (data and
manifests, no metadata); and one of the twelve whose newest metadata file was cut off in the middle. Run again, it makes the
folder anew; with ``--append`` it adds a snapshot to three tables of the folder instead.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

MARK = ".made-by-headwater-example"
CORRUPT = "finance.ledger"
DROPPED = "finance.budget_2023"


class Recipe(NamedTuple):
    """One table: its name, columns, number of snapshots and properties."""

    name: str
    columns: dict[str, pa.DataType]
    snapshots: int = 3
    properties: Mapping[str, str] = MappingProxyType({})


ID, TEXT, MONEY, TIME = pa.int64(), pa.string(), pa.float64(), pa.timestamp("us", tz="UTC")
RECIPES = (
    Recipe("sales.orders", {"id": ID, "customer": ID, "placed": TIME, "total": MONEY}, snapshots=4),
    Recipe("sales.order_lines", {"order_id": ID, "product": ID, "price": MONEY}),
    Recipe("sales.customers", {"id": ID, "name": TEXT, "country": TEXT}),
    Recipe("sales.products", {"id": ID, "title": TEXT, "price": MONEY}, snapshots=2),
    Recipe("sales.returns", {"order_id": ID, "reason": TEXT}, snapshots=2),
    Recipe("web.page_views", {"id": ID, "page": TEXT, "seen": TIME}, snapshots=4, properties={"format-version": "1"}),
    Recipe("web.sessions", {"id": ID, "visitor": TEXT, "started": TIME}),
    Recipe("web.searches", {"id": ID, "words": TEXT}, snapshots=2),
    Recipe("web.visitors", {"id": ID, "name": TEXT}),
    Recipe("finance.invoices", {"id": ID, "order_id": ID, "total": MONEY}),
    Recipe("finance.payments", {"id": ID, "invoice": ID, "paid": TIME, "total": MONEY}, snapshots=4),
    Recipe(CORRUPT, {"id": ID, "account": TEXT, "amount": MONEY}),
)
GROWING = ("sales.orders", "web.page_views", "finance.payments")
DROPPED_RECIPE = Recipe(DROPPED, {"id": ID, "amount": MONEY}, snapshots=2)


def main(arguments: list[str]) -> int:
    appends, names = arguments[:1] == ["--append"], [word for word in arguments if word != "--append"]
    if len(names) != 1 or len(arguments) != 1 + appends:
        sys.stderr.write("usage: python examples/warehouse.py [--append] DIR\n")
        return 2
    directory = Path(names[0]).resolve()
    if appends and not (directory / MARK).exists():
        sys.stderr.write(f"{directory} is no warehouse of this script: make it first, without --append\n")
        return 5
    if not appends and not _make_empty(directory):
        sys.stderr.write(f"{directory} exists, and this script did not make it: name another folder\n")
        return 5
    for line in append_snapshots(directory) if appends else make_warehouse(directory):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return 0


def make_warehouse(directory: Path) -> Iterator[str]:
    """Write the tables below an existing empty folder; yields a line for a person per table."""
    with _catalog(directory) as catalog:
        for recipe in RECIPES:
            table = _make_table(catalog, directory, recipe)
            fate = _cut_newest_metadata(table) if recipe.name == CORRUPT else ""
            yield f"{recipe.name:<22} {len(table.snapshots())} snapshots, format {table.format_version}{fate}"
        dropped = _make_table(catalog, directory, DROPPED_RECIPE)
        catalog.drop_table(DROPPED)
        removed = _remove_metadata(_path(dropped.location()))
        yield f"{DROPPED:<22} dropped: its {removed} metadata files are gone, data and manifests were left behind"
    yield f"{len(RECIPES)} tables in {directory}, 1 of them corrupt, and the remains of 1 dropped table"


def append_snapshots(directory: Path) -> Iterator[str]:
    """Add a snapshot to some tables, as their writers do while a catalog looks on; yields a line per table."""
    with _catalog(directory) as catalog:
        for recipe in RECIPES:
            if recipe.name in GROWING:
                newest = max((directory / recipe.name.replace(".", "/") / "metadata").glob("*.metadata.json"))
                table = catalog.register_table(recipe.name, newest.as_uri())
                _append(table, recipe, len(table.snapshots()))
                yield f"{recipe.name:<22} {len(table.snapshots())} snapshots"


@contextmanager
def _catalog(directory: Path) -> Iterator[SqlCatalog]:
    """A catalog that is forgotten afterwards; the tables' files are all that stays."""
    with tempfile.TemporaryDirectory() as scratch:
        catalog = SqlCatalog("example", uri=f"sqlite:///{scratch}/catalog.db", warehouse=directory.as_uri())
        try:
            for namespace in dict.fromkeys(recipe.name.partition(".")[0] for recipe in RECIPES):
                catalog.create_namespace(namespace)
            yield catalog
        finally:
            catalog.close()


def _make_empty(directory: Path) -> bool:
    """An empty folder with our mark; False for a folder that is not empty and not ours."""
    if directory.exists():
        if not (directory / MARK).exists() and any(directory.iterdir()):
            return False
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    (directory / MARK).touch()
    return True


def _make_table(catalog: SqlCatalog, directory: Path, recipe: Recipe) -> Table:
    schema = pa.schema(list(recipe.columns.items()))
    location = (directory / recipe.name.replace(".", "/")).as_uri()
    table = catalog.create_table(recipe.name, schema, location=location, properties=dict(recipe.properties))
    for batch in range(recipe.snapshots):
        _append(table, recipe, batch)
    return table


def _append(table: Table, recipe: Recipe, batch: int) -> None:
    schema = pa.schema(list(recipe.columns.items()))
    table.append(pa.table([_values(kind, batch) for kind in recipe.columns.values()], schema=schema))


def _values(kind: pa.DataType, batch: int) -> pa.Array:
    numbers = range(batch * 100, batch * 100 + 100)
    if kind == TEXT:
        return pa.array([f"entry {number}" for number in numbers])
    if kind == TIME:
        return pa.array([1_750_000_000_000_000 + number * 60_000_000 for number in numbers], TIME)
    return pa.array(numbers, kind) if kind == ID else pa.array([number * 1.5 for number in numbers], kind)


def _cut_newest_metadata(table: Table) -> str:
    newest = _path(table.metadata_location)
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) // 2])
    return f"; cut off: {newest.name}"


def _remove_metadata(table: Path) -> int:
    files = list((table / "metadata").glob("*.metadata.json"))
    for file in files:
        file.unlink()
    return len(files)


def _path(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
