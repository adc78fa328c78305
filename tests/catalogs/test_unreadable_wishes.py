"""Values of other types than the fields say: refused with their names before anything is written, for nobody could read them back."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.catalogs import (
    Catalog,
    CommitMeta,
    ContentKey,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    KeyMerge,
    Namespace,
    Put,
    Udf,
)
from headwater.errors import RefusedError

KEY = ContentKey.of("sales")
TABLE = IcebergTable(metadata_location="s3://lake/v1.json")
ODD: Any = object()


def odd(cls: type, **fields: Any) -> Any:
    return cls(**fields)


CONTENTS = [
    (odd(Namespace, properties={"n": 1}), "properties"),
    (odd(IcebergTable, metadata_location=None), "metadata_location"),
    (odd(IcebergTable, metadata_location="s3://x", snapshot_id="7"), "snapshot_id"),
    (odd(IcebergTable, metadata_location="s3://x", snapshot_id=True), "snapshot_id"),
    (odd(IcebergTable, metadata_location="s3://x", schema_id=1 << 70), ""),
    (odd(IcebergTable, metadata_location="\ud800"), ""),
    (odd(IcebergTable, metadata_location=ODD), ""),
    (odd(IcebergView, metadata_location="s3://x", version_id=None), "version_id"),
    (odd(DeltaLakeTable, metadata_location_history="ab"), "metadata_location_history"),
    (odd(Udf, metadata_location="s3://x", version_id=5), "version_id"),
    ({"a": 1}, "dict, and no content: use one of IcebergTable"),
    (None, "NoneType, and no content"),
]


@pytest.mark.parametrize(("content", "told"), CONTENTS, ids=lambda one: repr(one)[:60])
def test_content_that_nobody_could_read_is_refused(catalog: Catalog, content: Any, told: str) -> None:
    with pytest.raises(RefusedError, match=rf"sales is a .*{told}"):
        catalog.commit("main", [Put(KEY, content)])

    assert catalog.resolve("main") is None


def test_nor_is_anything_compared_with_it(catalog: Catalog) -> None:
    with pytest.raises(RefusedError, match="properties"):
        catalog.commit("main", [Put(KEY, TABLE, expected_content=odd(Namespace, properties={"n": 1}))])
    with pytest.raises(RefusedError, match="properties"):
        KeyMerge(resolved=odd(Namespace, properties={"n": 1}))


@pytest.mark.parametrize(
    "fields",
    [
        {"message": None},
        {"message": 5},
        {"committer": None},
        {"authors": "bob"},
        {"authors": (1,)},
        {"authors": None},
        {"signed_off_by": ["bob"]},
        {"properties": {"a": "bc"}},
        {"properties": {1: ("a",)}},
        {"properties": {"a": 1}},
        {"author_time": "2026"},
        {"author_time": True},
        {"merged": ("0123456789abcdef",)},
    ],
    ids=str,
)
def test_words_of_another_type_are_refused(fields: dict[str, Any]) -> None:
    [name] = fields
    with pytest.raises(RefusedError, match=f"{name} of a commit is a"):
        CommitMeta(**fields)


@pytest.mark.parametrize("given", [{"message": None}, {"authors": "bob"}, {"authors": None}, {"properties": {"a": 1}}], ids=str)
def test_commit_is_refused_as_its_words_are(catalog: Catalog, given: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match=f"{next(iter(given))} of a commit is a"):
        catalog.commit("main", [Put(KEY, TABLE)], **given)

    assert catalog.resolve("main") is None


def test_commit_of_the_year_1970_keeps_its_authors_time(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, TABLE)], meta=CommitMeta(author_time=odd(int)))

    assert next(iter(catalog.log())).meta.author_time == 0
