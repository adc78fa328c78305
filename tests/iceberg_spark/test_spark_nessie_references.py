"""Branches, tags and commits of a catalog that Spark uses by Nessie's API."""

from __future__ import annotations

import pytest
from nessie_lake import NessieLake
from spark_sql import SparkFault

from pynessie_env import Pynessie

pytestmark = pytest.mark.long

BEFORE = [(1, "Bern"), (2, "Graz")]
INSERT = "INSERT INTO {}.sales.{} VALUES ({}, '{}')"


def test_table_names_carry_a_branch_or_a_commit(versioned: NessieLake) -> None:
    old = versioned.hash()
    versioned.catalog.create_branch("dev/x")
    versioned.sql(INSERT.format("nessie", "`orders@dev/x`", 3, "Lyon"))
    versioned.sql(INSERT.format("nessie", "orders", 4, "Wien"))

    assert versioned.rows("nessie.sales.`orders@dev/x`") == [*BEFORE, (3, "Lyon")]
    assert versioned.rows() == [*BEFORE, (4, "Wien")]
    for past in (f"orders@main#{old}", f"orders@dev/x#{old}"):
        assert versioned.rows(f"nessie.sales.`{past}`") == BEFORE
    assert versioned.sql("SHOW TABLES IN nessie.sales") == [("sales", "orders", False)]


def test_catalogs_of_spark_are_at_a_reference(versioned: NessieLake) -> None:
    versioned.catalog.create_branch("dev")
    versioned.catalog.create_tag("v1")
    versioned.add("dev", reference="dev")
    versioned.add("past", reference="v1")
    versioned.add("commit", reference="dev", **{"ref.hash": versioned.hash()})
    versioned.sql(INSERT.format("dev", "orders", 3, "Lyon"))
    versioned.sql("CREATE TABLE dev.sales.extra AS SELECT 1 AS id")

    assert versioned.rows("dev.sales.orders") == [*BEFORE, (3, "Lyon")]
    for name in ("nessie", "past", "commit"):
        assert versioned.rows(f"{name}.sales.orders") == BEFORE
    assert [name for _, name, _ in versioned.sql("SHOW TABLES IN nessie.sales")] == ["orders"]


@pytest.mark.parametrize("past", ["orders@v1", "orders@main#{hash}"])
def test_past_is_read_only(versioned: NessieLake, past: str) -> None:
    versioned.catalog.create_tag("v1")
    table = past.format(hash=versioned.hash())
    versioned.sql(INSERT.format("nessie", "orders", 3, "Lyon"))
    before = versioned.hash()

    with pytest.raises(SparkFault, match=r"You can only mutate|READONLY"):
        versioned.sql(INSERT.format("nessie", f"`{table}`", 4, "Wien"))
    assert versioned.hash() == before


def test_reference_that_is_missing_is_told(versioned: NessieLake) -> None:
    versioned.add("nowhere", reference="nowhere")

    with pytest.raises(SparkFault) as fault:
        versioned.sql("SHOW NAMESPACES IN nowhere")
    assert "NessieReferenceNotFoundException" in fault.value.kinds or "'nowhere' does not exist" in fault.value.text
    with pytest.raises(SparkFault, match="nowhere"):
        versioned.rows("nessie.sales.`orders@nowhere`")


def test_times_are_refused_by_the_client(versioned: NessieLake) -> None:
    with pytest.raises(SparkFault, match="reference by timestamp is not supported"):
        versioned.rows("nessie.sales.`orders@main#2026-01-01T00:00:00Z`")


def test_merged_branch_is_read_on_main(versioned: NessieLake, pynessie: Pynessie) -> None:
    pynessie.run("branch", "dev")
    versioned.sql(INSERT.format("nessie", "`orders@dev`", 3, "Lyon"))
    versioned.sql("CREATE TABLE nessie.sales.places AS SELECT 'Rom' AS city")

    assert "Merged dev onto main" in pynessie.run("merge", "dev", "-b", "main", "--force")
    assert versioned.rows() == [*BEFORE, (3, "Lyon")]
    assert versioned.rows("nessie.sales.places", "city") == [("Rom",)]


def test_merge_of_a_table_that_both_changed_is_a_conflict(versioned: NessieLake, pynessie: Pynessie) -> None:
    pynessie.run("branch", "dev")
    versioned.sql(INSERT.format("nessie", "`orders@dev`", 3, "Lyon"))
    versioned.sql(INSERT.format("nessie", "orders", 4, "Wien"))
    before = versioned.hash()

    told = pynessie.fail("merge", "dev", "-b", "main", "--force")

    assert "Status code: 409" in told and "Error code: REFERENCE_CONFLICT" in told and "sales.orders" in told
    assert versioned.hash() == before
    assert versioned.rows() == [*BEFORE, (4, "Wien")]
