"""Branches and tags, as Nessie's clients read them."""

from __future__ import annotations

from collections.abc import Callable

from nessie_caller import NessieCaller

from guarded_server import GuardedServer
from headwater_server.nessie.reference_paths import NO_ANCESTOR_HASH


def test_default_branch_is_read_by_its_name(nessie: NessieCaller) -> None:
    assert nessie.get("trees/main").data == {"reference": {"type": "BRANCH", "name": "main", "hash": NO_ANCESTOR_HASH}}
    assert nessie.v1.get("trees/tree").data == {"type": "BRANCH", "name": "main", "hash": NO_ANCESTOR_HASH}


def test_unknown_reference_is_told_as_missing(nessie: NessieCaller) -> None:
    assert nessie.get("trees/nothing").error == (404, "REFERENCE_NOT_FOUND")
    assert nessie.v1.get("trees/tree/nothing").error == (404, "REFERENCE_NOT_FOUND")


def test_root_reads_a_guarded_catalog(guarded: GuardedServer, caller_of: Callable[[str], NessieCaller]) -> None:
    assert caller_of("root").hash_of("main") == NO_ANCESTOR_HASH
