from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.iceberg import QuarantineCode, TableIdentity, exclusive_keys, find_conflicts

LAKE = "s3://lake"


def sketch(name: str, *, uuid: str | None = None, key: str = "") -> TableIdentity:
    return TableIdentity(f"{LAKE}/{name}", tuple((key or name.replace("/", ".")).split(".")), uuid)


def codes(*sketches: TableIdentity) -> dict[str, QuarantineCode]:
    return {directory.removeprefix(f"{LAKE}/"): verdict.code for directory, verdict in find_conflicts(sketches).items()}


names = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4)
tables = st.lists(
    st.builds(
        lambda folders, key, uuid: TableIdentity("/".join([LAKE, *folders]), tuple(key), uuid),
        names,
        names,
        st.sampled_from([None, *"123"]),
    ),
    unique_by=lambda table: table.directory,
)


@given(tables)
def test_table_that_shares_no_trait_changes_no_verdict(sketches: list[TableIdentity]) -> None:
    traits = {table: exclusive_keys(table, [LAKE]) for table in sketches}
    owners = Counter(trait for alone, _ in traits.values() for trait in alone)
    tables = Counter(trait for alone, shared in traits.values() for trait in (*alone, *shared))
    contested = {trait for trait, number in tables.items() if number > 1 and owners[trait]}
    involved = [table for table in sketches if not contested.isdisjoint([*traits[table][0], *traits[table][1]])]

    assert find_conflicts(involved) == find_conflicts(sketches)


def test_sound_lake_has_no_table_that_shares_a_trait() -> None:
    traits = [exclusive_keys(sketch(f"ns{number % 2}/t{number}", uuid=str(number)), [LAKE]) for number in range(9)]

    alone = [trait for own, _ in traits for trait in own]
    assert len(alone) == len(set(alone)) == 27
    assert set(alone).isdisjoint(trait for _, shared in traits for trait in shared)


def test_tables_without_uuids_do_not_share_one() -> None:
    assert codes(sketch("a"), sketch("b")) == {}


@pytest.mark.parametrize(
    ("one", "other", "code"),
    [
        (sketch("a", uuid="1"), sketch("b", uuid="1"), QuarantineCode.DUPLICATE_UUID),
        (sketch("a", key="t"), sketch("b", key="t"), QuarantineCode.DUPLICATE_KEY),
        (sketch("a", key="x"), sketch("a/b", key="y"), QuarantineCode.NESTED),
        (sketch("a", uuid="1", key="t"), sketch("a/b", uuid="1", key="t"), QuarantineCode.DUPLICATE_UUID),
    ],
)
def test_neither_of_two_that_contradict_each_other_is_right(
    one: TableIdentity, other: TableIdentity, code: QuarantineCode
) -> None:
    assert set(codes(one, other, sketch("clear")).values()) == {code}
    assert len(codes(one, other, sketch("clear"))) == 2


def test_table_cannot_be_the_namespace_of_another() -> None:
    assert codes(sketch("x", key="sales"), sketch("y", key="sales.orders")) == {"y": QuarantineCode.KEY_TAKEN}


def test_table_that_stays_out_is_in_nobodys_way() -> None:
    assert codes(sketch("a", key="s"), sketch("b", key="s"), sketch("c", key="s.t")) == {
        "a": QuarantineCode.DUPLICATE_KEY,
        "b": QuarantineCode.DUPLICATE_KEY,
    }


def test_verdict_on_many_names_the_first_and_their_number() -> None:
    verdicts = find_conflicts(sketch(f"t{number}", uuid="1") for number in range(9))

    message = verdicts[f"{LAKE}/t8"].message
    assert "t4 and 4 more have the same uuid" in message
    assert "t5" not in message


def test_tables_deep_within_each_other_name_their_neighbours() -> None:
    verdicts = find_conflicts([sketch("a", key="x"), sketch("a/b", key="y"), sketch("a/b/c", key="z")])

    assert verdicts[f"{LAKE}/a"].message.startswith(f"{LAKE}/a and {LAKE}/a/b lie")
    assert verdicts[f"{LAKE}/a/b/c"].message.startswith(f"{LAKE}/a/b and {LAKE}/a/b/c lie")


def test_neighbour_with_a_longer_name_is_not_within() -> None:
    assert codes(sketch("a", key="x"), sketch("ab", key="y")) == {}
