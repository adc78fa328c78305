"""Contents for Nessie's readers, committed through the core, and the same through the wire's names."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID, uuid4

from headwater.catalogs import Catalog, Content, ContentKey, Delete, IcebergTable, IcebergView, Namespace, Put
from headwater.store import id_text


def key_of(text: str) -> ContentKey:
    return ContentKey.parse(text)


def table(number: int = 0, *, content_id: UUID | None = None) -> IcebergTable:
    """A table without a document; its location tells its number."""
    return IcebergTable(
        id=content_id, metadata_location=f"file:///tables/{number}.metadata.json", snapshot_id=number, table_uuid=str(uuid4())
    )


def view(number: int = 0) -> IcebergView:
    return IcebergView(metadata_location=f"file:///views/{number}.metadata.json", version_id=number, view_uuid=str(uuid4()))


def put(
    lake: Catalog, contents: Mapping[str, Content], *, branch: str | None = None, message: str = "put", author: str = ""
) -> str:
    """Put contents at keys, in one commit. Returns its hash."""
    made = lake.commit(
        branch,
        [Put(key_of(text), content) for text, content in contents.items()],
        message=message,
        authors=[author] if author else (),
    )
    assert made.commit_id is not None
    return id_text(made.commit_id)


def change(lake: Catalog, text: str, number: int, *, branch: str | None = None, message: str = "change") -> str:
    """Give a table another version. Returns the hash of the commit."""
    present = lake.get_content(branch, key_of(text))
    assert isinstance(present, IcebergTable)
    return put(lake, {text: table(number, content_id=present.id)}, branch=branch, message=message)


def drop(lake: Catalog, *texts: str, branch: str | None = None, message: str = "drop") -> str:
    made = lake.commit(branch, [Delete(key_of(text)) for text in texts], message=message)
    assert made.commit_id is not None
    return id_text(made.commit_id)


def fill(lake: Catalog, *, branch: str | None = None) -> str:
    """Put namespaces ``sales``, ``sales.eu`` and ``stock``, five tables and a view. Returns the hash of the commit."""
    contents: dict[str, Content] = {
        "sales": Namespace(properties={"owner": "ann"}),
        "sales.eu": Namespace(),
        "sales.eu.orders": table(1),
        "sales.eu.refunds": table(2),
        "sales.orders": table(3),
        "sales.report": view(4),
        "stock": Namespace(),
        "stock.items": table(5),
        "stock.places": table(6),
    }
    return put(lake, contents, branch=branch, message="fill")


FILLED = [
    "sales",
    "sales.eu",
    "sales.eu.orders",
    "sales.eu.refunds",
    "sales.orders",
    "sales.report",
    "stock",
    "stock.items",
    "stock.places",
]
"""The keys of a filled lake, in their order."""
