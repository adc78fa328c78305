"""Nessie's own client in Java: what it reads, changes and merges, and what it is told of conflicts."""

from __future__ import annotations

from typing import Any

import pytest
from nessie_java import JavaFault, NessieJava, called
from nessie_lake import NessieLake

pytestmark = pytest.mark.long

INSERT = "INSERT INTO nessie.sales.{} VALUES ({}, '{}')"


@pytest.fixture
def java(versioned: NessieLake) -> NessieJava:
    """The client, for a catalog with the table ``sales.orders``."""
    return NessieJava.connect(versioned)


def keys(entries: Any) -> list[str]:
    return [str(each.getName().toPathString()) for each in entries]


def test_client_agrees_with_the_server_on_its_version(java: NessieJava) -> None:
    config = java.api.getConfig()

    assert (config.getDefaultBranch(), config.getMaxSupportedApiVersion(), config.getActualApiVersion()) == ("main", 2, 2)
    assert config.getSpecVersion() == "2.2.0"


def test_references_are_listed_moved_and_deleted(java: NessieJava) -> None:
    java.create_branch("dev/x")
    java.commit("dev/x", java.put_namespace("eu"))
    everything = java.model("FetchOption").ALL
    listing = java.api.getAllReferences

    assert [each.getName() for each in listing().get().getReferences()] == ["dev/x", "main"]
    assert [each.getName() for each in listing().filter("ref.name == 'dev/x'").get().getReferences()] == ["dev/x"]
    assert listing().maxRecords(1).stream().count() == 2
    seen = java.api.getReference().refName("dev/x").fetch(everything).get().getMetadata()
    assert (seen.getNumCommitsAhead(), seen.getNumCommitsBehind(), seen.getCommonAncestorHash()) == (
        1,
        0,
        java.head().getHash(),
    )

    moved = java.api.assignReference().reference(java.head("dev/x")).assignTo(java.head()).assignAndGet()
    assert moved.getHash() == java.head().getHash()
    java.commit("dev/x", java.put_namespace("us"))
    stale = java.api.assignReference().refName("dev/x").hash(moved.getHash()).assignTo(java.head())
    for change in (stale.assignAndGet, java.api.deleteReference().refName("dev/x").hash(moved.getHash()).getAndDelete):
        with pytest.raises(JavaFault) as fault:
            called(change)
        assert fault.value.conflicts == [("UNEXPECTED_HASH", "")]
    java.api.deleteReference().reference(java.head("dev/x")).delete()
    with pytest.raises(JavaFault, match="NessieReferenceNotFoundException"):
        called(lambda: java.head("dev/x"))


def test_entries_are_listed_by_range_and_filter(java: NessieJava) -> None:
    java.commit("main", java.put_namespace("eu"), java.put_namespace("eu.de"), java.put_namespace("us"))

    def listed(**asked: Any) -> list[str]:
        builder = java.api.getEntries().refName("main")
        for name, value in asked.items():
            builder = getattr(builder, name)(value)
        return keys(builder.get().getEntries())

    assert listed() == ["eu", "eu.de", "sales", "sales.orders", "us"]
    assert listed(prefixKey=java.key("eu")) == ["eu", "eu.de"]
    assert listed(minKey=java.key("eu.de"), maxKey=java.key("sales.orders")) == ["eu.de", "sales", "sales.orders"]
    assert listed(key=java.key("us")) == ["us"]
    assert listed(filter="entry.contentType == 'ICEBERG_TABLE'") == ["sales.orders"]
    [entry] = java.api.getEntries().refName("main").withContent(True).key(java.key("sales.orders")).get().getEntries()
    assert entry.getContent().getId() == java.lake.content_id("orders") == entry.getContentId()


def test_log_and_differences_are_read(java: NessieJava) -> None:
    before, everything = java.head().getHash(), java.model("FetchOption").ALL
    java.create_branch("dev")
    java.commit("dev", java.put_namespace("eu"), java.delete("sales.orders"))
    log = java.api.getCommitLog

    newest, *older = log().refName("dev").fetch(everything).get().getLogEntries()
    assert sorted(each.getKey().toPathString() for each in newest.getOperations()) == ["eu", "sales.orders"]
    assert newest.getParentCommitHash() == older[0].getCommitMeta().getHash() == before
    assert log().refName("dev").maxRecords(1).stream().count() == 1 + len(older)
    assert len(log().refName("dev").untilHash(before).get().getLogEntries()) == 2
    assert len(log().refName("dev").filter("commit.message.startsWith('by the client')").get().getLogEntries()) == 1

    def differing(**asked: Any) -> list[str]:
        builder = java.api.getDiff().fromRefName("main").toRefName("dev")
        for name, value in asked.items():
            builder = getattr(builder, name)(value)
        return [str(each.getKey().toPathString()) for each in builder.get().getDiffs()]

    assert differing() == ["eu", "sales.orders"]
    assert differing(prefixKey=java.key("sales")) == differing(filter="key.namespace == 'sales'") == ["sales.orders"]


def test_conflicts_of_a_commit_are_told_by_kind_and_key(java: NessieJava) -> None:
    before = java.head().getHash()
    java.commit("main", java.put_namespace("eu"))
    unchanged = java.model("Operation$Unchanged").of(java.key("sales.orders"))
    java.lake.sql(INSERT.format("orders", 3, "Lyon"))

    for operation, expected, told in (
        (java.put_namespace("eu"), before, [("KEY_EXISTS", "eu")]),
        (java.put_namespace("a.b.c"), None, [("NAMESPACE_ABSENT", "a.b"), ("NAMESPACE_ABSENT", "a")]),
        (java.put_namespace("sales.orders.x"), None, [("NOT_A_NAMESPACE", "sales.orders")]),
        (java.delete("none"), None, [("KEY_DOES_NOT_EXIST", "none")]),
        (java.delete("sales"), None, [("NAMESPACE_NOT_EMPTY", "sales")]),
        (java.delete("sales.orders"), before, [("VALUE_DIFFERS", "sales.orders")]),
        (unchanged, before, [("VALUE_DIFFERS", "sales.orders")]),
    ):
        with pytest.raises(JavaFault) as fault:
            java.commit("main", operation, expected=expected)
        assert fault.value.conflicts == told


def test_merge_takes_the_modes_that_it_is_given(java: NessieJava) -> None:
    java.create_branch("dev")
    java.commit("dev", java.put_namespace("eu"))
    dry = java.merge("dev", dryRun=True)
    assert (dry.wasSuccessful(), dry.wasApplied()) == (True, False)
    java.lake.sql(INSERT.format("orders", 3, "Lyon"))
    java.lake.sql(INSERT.format("`orders@dev`", 4, "Wien"))

    with pytest.raises(JavaFault) as fault:
        java.merge("dev")
    assert fault.value.conflicts == [("VALUE_DIFFERS", "sales.orders")]
    told = java.merge("dev", returnConflictAsResult=True)
    assert (told.wasSuccessful(), told.wasApplied()) == (False, False)
    assert [each.getKey().toPathString() for each in told.getDetails() if each.getConflict() is not None] == ["sales.orders"]

    modes = java.model("MergeBehavior")
    merged = java.merge("dev", mergeMode=(java.key("sales.orders"), modes.DROP))
    assert merged.wasApplied() and merged.getResultantTargetHash() == java.head().getHash()
    assert java.lake.rows() == [(1, "Bern"), (2, "Graz"), (3, "Lyon")]
    assert keys(java.api.getEntries().refName("main").get().getEntries()) == ["eu", "sales", "sales.orders"]


def test_transplant_repeats_commits(java: NessieJava) -> None:
    java.create_branch("dev")
    for name in ("eu", "us"):
        java.commit("dev", java.put_namespace(name))
    hashes = java.lake.sql.java_class("java.util.ArrayList")()
    hashes.add(java.head("dev").getHash())

    builder = java.api.transplantCommitsIntoBranch().branch(java.head()).fromRefName("dev").hashesToTransplant(hashes)
    assert called(builder.transplant).wasApplied()
    assert keys(java.api.getEntries().refName("main").get().getEntries()) == ["sales", "sales.orders", "us"]
    newest, *_ = java.api.getCommitLog().refName("main").get().getLogEntries()
    assert newest.getCommitMeta().getMessage() == "by the client in Java"


def test_past_is_read_by_hash_and_by_steps(java: NessieJava) -> None:
    java.commit("main", java.put_namespace("eu"))
    head = java.head().getHash()

    for reference, commit in (("main", f"{head}~1"), ("DETACHED", java.api.getCommitLog().refName("main").get())):
        text = commit if isinstance(commit, str) else commit.getLogEntries()[1].getCommitMeta().getHash()
        assert keys(java.api.getEntries().refName(reference).hashOnRef(text).get().getEntries()) == ["sales", "sales.orders"]
