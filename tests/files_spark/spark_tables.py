"""A store in a SQLite file with one file table ``orders``, and handles on it that open and close by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater import Settings, open_store
from headwater.files import FileTable, FileTableColumn, FileTables, RowKeyType, open_file_references
from headwater.realms import CredentialsHash, RealmRegistry, bootstrap
from headwater_workers.pipeline.files.file_options import file_table_at

HASH = CredentialsHash(client_id="c", salt=b"s", digest=b"d")
COLUMNS = (("key", "long"), ("place", "string"), ("value", "double"))


@dataclass(frozen=True)
class PlacedTable:
    """Where a table is. ``options`` are those of the format ``headwater-files``."""

    url: str
    name: str = "orders"
    realm: str = "acme"

    @property
    def options(self) -> dict[str, str]:
        return {"url": self.url, "realm": self.realm, "table": self.name}

    @contextmanager
    def opened(self) -> Iterator[FileTable]:
        with file_table_at(self.url, self.realm, self.name) as table:
            yield table

    def files(self) -> list[Path]:
        with self.opened() as table:
            folder = Path(table.definition.data_folder.removeprefix("file://"))
        return sorted(folder.iterdir()) if folder.exists() else []


def make_table(folder: Path, **fields: Any) -> PlacedTable:
    url = f"sqlite:///{folder}/store.db"
    columns = fields.pop("columns", COLUMNS)
    with open_store(url, settings=Settings()) as store:
        registry = RealmRegistry(store)
        registry.create_realm("acme")
        bootstrap(registry, "acme", HASH)
        tables = FileTables(registry.open_realm("acme"), lambda scope: open_file_references(store, scope, create=True))
        tables.create_table(
            "orders",
            location=f"file://{folder}/lake",
            columns=tuple(FileTableColumn(name=name, type=kind) for name, kind in columns),
            **({"key_column": "key", "key_type": RowKeyType.LONG, "sort_columns": ("place",)} | fields),
        )
    return PlacedTable(url)
