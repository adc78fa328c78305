"""Random calls on our catalog and on pyiceberg's own: they answer the same, and list the same, all the way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lake_doors import own_properties
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema

NAMESPACES = ("sales", "web", "sales.eu")
TABLES = tuple(f"{namespace}.{name}" for namespace in NAMESPACES for name in ("a", "b"))
CALLS = 120
MISSING = {"NoSuchNamespaceError", "NoSuchTableError"}
"""Which of them it is, pyiceberg's REST catalog does not look at."""

Call = Callable[[IcebergCatalog], Any]


@pytest.fixture
def theirs(tmp_path: Path, warehouse: str) -> Iterator[SqlCatalog]:
    with SqlCatalog("sql", uri=f"sqlite:///{tmp_path}/sql.db", warehouse=warehouse) as catalog:
        yield catalog


def some_call(chance: random.Random, schema: Schema) -> tuple[str, Call]:
    """A call, in words and to be made. Namespaces above others are left alone: the two differ there."""
    namespace, table, other = chance.choice(NAMESPACES), chance.choice(TABLES), chance.choice(TABLES)
    value = str(chance.randrange(3))
    calls: dict[str, Call] = {
        f"create namespace {namespace}": lambda catalog: catalog.create_namespace(namespace),
        "drop namespace web": lambda catalog: catalog.drop_namespace("web"),
        f"create {table}": lambda catalog: catalog.create_table(table, schema).name(),
        f"load {table}": lambda catalog: catalog.load_table(table).properties,
        f"exists {table}": lambda catalog: catalog.table_exists(table),
        f"drop {table}": lambda catalog: catalog.drop_table(table),
        f"rename {table} to {other}": lambda catalog: catalog.rename_table(table, other).name(),
        f"change {table}": lambda catalog: changed(catalog, table, value),
        f"list {namespace}": lambda catalog: sorted(catalog.list_tables(namespace)),
        "namespaces": lambda catalog: sorted(catalog.list_namespaces()),
        f"change namespace {namespace}": lambda catalog: changed_namespace(catalog, namespace, value),
    }
    return chance.choice(list(calls.items()))


def changed(catalog: IcebergCatalog, table: str, value: str) -> Any:
    return catalog.load_table(table).transaction().set_properties(value=value).commit_transaction().properties


def changed_namespace(catalog: IcebergCatalog, namespace: str, value: str) -> Any:
    catalog.update_namespace_properties(namespace, {"1", "2"} - {value}, {value: "x"})
    properties = own_properties(catalog, namespace)
    return {name: text for name, text in properties.items() if name != "exists"}  # theirs marks an empty one by this


def answer(call: Call, catalog: IcebergCatalog) -> Any:
    """What it returned, or the kind of what it raised."""
    try:
        return call(catalog)
    except Exception as fault:  # noqa: BLE001  whatever it is, the other one has to raise it, too
        return type(fault).__name__


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_both_answer_the_same(client: IcebergCatalog, theirs: SqlCatalog, schema: Schema, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(CALLS):
        words, call = some_call(chance, schema)
        mine = answer(call, client)

        other = answer(call, theirs)
        assert mine == other or {mine, other} == MISSING, f"call {number} of seed {seed}: {words}"
