"""A branch or tag that is elsewhere than the caller saw is left alone, and the conflict names both commits."""

from __future__ import annotations

import pytest

from headwater.catalogs import Catalog, Conflict, ConflictKind, ContentKey, IcebergTable, Put
from headwater.errors import ConflictError
from headwater.store import ObjectId, id_text


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def moved(catalog: Catalog, first: ObjectId) -> ObjectId:
    """The head that main and the tag v1 have by now."""
    done = catalog.commit("main", [Put(ContentKey.of("t"), IcebergTable(metadata_location="s3://lake/t.json"))])
    catalog.create_tag("v1")
    assert done.commit_id is not None
    return done.commit_id


@pytest.mark.parametrize("act", ["assign_branch", "assign_tag", "delete_branch", "delete_tag"])
def test_stale_hash_is_one_conflict_that_names_both(catalog: Catalog, first: ObjectId, moved: ObjectId, act: str) -> None:
    name = "v1" if act.endswith("tag") else "dev"
    catalog.create_branch("dev")
    targets = [first] if act.startswith("assign") else []

    with pytest.raises(ConflictError) as refused:
        getattr(catalog, act)(name, *targets, expected=first)

    (conflict,) = refused.value.details
    assert isinstance(conflict, Conflict)
    assert (conflict.kind, conflict.key) == (ConflictKind.UNEXPECTED_HASH, None)
    assert str(conflict).endswith(f"is at {id_text(moved)}, expected {id_text(first)}: look again")
