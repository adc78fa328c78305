"""The nearest common ancestor of two commits, over parents and merged heads."""

from __future__ import annotations

import random
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_reads import ReadCounts, counted_rows

from headwater.catalogs.history import merge_base
from headwater.catalogs.history.merge_base import MergeBase, MergeBaseFinder
from headwater.clock import Micros
from headwater.commits import Commit, Head, Transaction, commit_change, read_commit
from headwater.commits.commit import TAIL
from headwater.errors import ExpiredError, NotFoundError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, id_text, open_store


class Graph:
    """Commits by name, each on the branch of its first parent."""

    def __init__(self, rows: RealmStore) -> None:
        self.rows = rows
        self.ids: dict[str, ObjectId] = {}
        self.parents: dict[str, tuple[str, ...]] = {}

    def add(self, branch: str, name: str, *merged: str) -> None:
        self.rows.ensure_reference(branch)

        def change(tx: Transaction) -> ObjectId | None:
            tx.index("things").put(name.encode(), IndexValue(None, b""))
            return tx.head_id

        done = commit_change(self.rows, branch, change, properties={"merged": [id_text(self.ids[one]) for one in merged]})
        assert done.commit_id is not None
        first = [one for one, commit_id in self.ids.items() if commit_id == done.result]
        self.ids[name] = done.commit_id
        self.parents[name] = (*first, *merged)

    def branch(self, branch: str, name: str) -> None:
        self.rows.create_reference(branch, self.ids[name])

    def find(self, into: str, source: str) -> MergeBase:
        head = self.head(into)
        return MergeBaseFinder(self.rows, self.head(source)).find_base(self.rows, head.id, head.commit)

    def base(self, into: str, source: str) -> str:
        found = self.find(into, source)
        names = {commit_id: name for name, commit_id in self.ids.items()}
        return "" if found.commit is None else names[found.commit]

    def head(self, name: str) -> Head:
        return read_commit(self.rows, self.ids[name])

    def lose(self, name: str) -> None:
        keys = [key for page in self.rows.scan_objects() for key in page if key.id == self.ids[name]]
        assert self.rows.delete_unchanged(keys) == 1

    def ancestors(self, name: str) -> set[str]:
        """With itself."""
        return {name}.union(*(self.ancestors(one) for one in self.parents[name]))

    def nearest(self, one: str, other: str) -> set[str]:
        common = self.ancestors(one) & self.ancestors(other)
        return {name for name in common if not any(name in self.ancestors(above) - {above} for above in common)}


@pytest.fixture
def graph(rows: RealmStore) -> Graph:
    """main: A - B - C, and dev: B - D - E."""
    made = Graph(rows)
    for name in "AB":
        made.add("main", name)
    made.branch("dev", "B")
    made.add("main", "C")
    made.add("dev", "D")
    made.add("dev", "E")
    return made


def test_branches_meet_where_they_parted(graph: Graph) -> None:
    assert graph.base("C", "E") == graph.base("E", "C") == "B"


def test_commit_meets_its_ancestor_there(graph: Graph) -> None:
    assert [graph.base("C", "A"), graph.base("A", "C"), graph.base("C", "C")] == ["A", "A", "C"]


def test_merged_commit_is_an_ancestor(graph: Graph) -> None:
    graph.add("main", "M", "D")
    graph.add("main", "N")

    assert graph.base("N", "E") == graph.base("E", "N") == "D"


def test_ancestor_over_two_merges_is_found(graph: Graph) -> None:
    graph.branch("side", "D")
    graph.add("side", "S", "C")
    graph.add("main", "M", "S")
    graph.add("dev", "F")

    assert graph.base("M", "F") == "D"


def test_merge_base_of_merges_back_and_forth_is_the_newest(graph: Graph) -> None:
    graph.add("main", "M", "E")
    graph.add("dev", "F", "C")
    found = graph.find("M", "F")

    assert {found.commit, *found.others} == {graph.ids["C"], graph.ids["E"]}
    assert found.commit == graph.ids["E"]


def test_histories_of_two_beginnings_have_none(graph: Graph) -> None:
    graph.add("other", "X")

    with pytest.raises(NotFoundError, match="no common ancestor"):
        graph.base("C", "X")


def test_head_on_top_of_a_known_one_costs_few_reads(graph: Graph) -> None:
    bases = MergeBaseFinder(graph.rows, graph.head("E"))
    first = graph.head("C")
    known = bases.find_base(graph.rows, first.id, first.commit)
    for name in "GHI":
        graph.add("main", name)
    newest = graph.head("I")

    assert bases.find_base(graph.rows, newest.id, newest.commit) is known


def test_merge_on_top_of_a_known_head_is_seen(graph: Graph) -> None:
    bases = MergeBaseFinder(graph.rows, graph.head("E"))
    first = graph.head("C")
    bases.find_base(graph.rows, first.id, first.commit)
    graph.add("main", "M", "D")
    graph.add("main", "N")
    newest = graph.head("N")

    assert bases.find_base(graph.rows, newest.id, newest.commit).commit == graph.ids["D"]


def test_target_that_was_put_elsewhere_is_looked_at_anew(graph: Graph) -> None:
    bases = MergeBaseFinder(graph.rows, graph.head("E"))
    first = graph.head("B")
    bases.find_base(graph.rows, first.id, first.commit)
    moved = graph.head("D")

    assert bases.find_base(graph.rows, moved.id, moved.commit).commit == graph.ids["D"]


def test_long_histories_are_walked(graph: Graph) -> None:
    for number in range(70):
        graph.add("main", f"m{number}")
        graph.add("dev", f"d{number}")

    assert graph.base("m69", "d69") == "B"


def test_base_that_was_collected_is_said_to_be(graph: Graph) -> None:
    for name in "AB":
        graph.lose(name)

    with pytest.raises(ExpiredError, match=f"{id_text(graph.ids['B'])} was collected: name the base"):
        graph.base("C", "E")


def test_merged_head_that_was_collected_is_told_beside_the_base(graph: Graph) -> None:
    graph.add("main", "M", "D")
    graph.lose("D")
    graph.branch("late", "B")
    graph.add("late", "L")

    assert graph.find("M", "L") == MergeBase(graph.ids["B"], lost=(graph.ids["D"],))


@pytest.mark.parametrize("seed", range(6))
def test_base_is_a_nearest_one_of_any_graph(rows: RealmStore, seed: int) -> None:
    chance, graph = random.Random(seed), Graph(rows)
    graph.add("b0", "0")
    for number in range(1, 4):
        graph.branch(f"b{number}", "0")
    for number in range(1, 40):
        merged = [str(chance.randrange(number))] if chance.random() < 0.4 else []
        graph.add(f"b{chance.randrange(4)}", str(number), *merged)
    names = list(graph.ids)

    for one, other in ((chance.choice(names), chance.choice(names)) for _ in range(60)):
        found = graph.find(one, other)
        wanted = {graph.ids[name] for name in graph.nearest(one, other)}
        assert {found.commit, *found.others} == wanted, f"seed {seed}: {one} and {other}"


def planted_history(rows: RealmStore, parents: list[tuple[int, ...]], times: list[int]) -> list[ObjectId]:
    """Commits by number, written as they are: the first parent of each, and heads that it merged."""
    ids = rows.new_ids(len(parents))
    commits: list[Commit] = []
    for (first, *merged), time in zip(parents, times, strict=True):
        above = commits[first] if first >= 0 else None
        commits.append(
            Commit(
                seq=1 if above is None else above.seq + 1,
                tail=() if above is None else (ids[first], *above.tail)[:TAIL],
                time=Micros(time),
                properties={"merged": [id_text(ids[one]) for one in merged]} if merged else {},
            )
        )
    rows.write_objects(zip(ids, commits, strict=True))
    return ids


def reads_of_base(rows: RealmStore, into: ObjectId, source: ObjectId) -> tuple[MergeBase | str, ReadCounts]:
    """The base, or the error instead, and the reads of commits that it took with an empty cache."""
    head, other = read_commit(rows, into), read_commit(rows, source)
    cold, counts = counted_rows(rows)
    try:
        return MergeBaseFinder(cold, other).find_base(cold, into, head.commit), counts
    except (ExpiredError, NotFoundError) as fault:
        return f"{type(fault).__name__}: {fault}", counts


def fan_in(rows: RealmStore, features: int, commits: int) -> list[ObjectId]:
    """A root, an old branch of one commit, and as many features as ``main`` has merges, of several commits each; ``main`` last."""
    parents: list[tuple[int, ...]] = [(-1,), (0,)]
    main = 0
    for _ in range(features):
        begun = len(parents)
        parents += [(main,), *((number,) for number in range(begun, begun + commits - 1))]
        parents.append((main, len(parents) - 1))
        main = len(parents) - 1
    return planted_history(rows, parents, [1_000_000 * number for number in range(len(parents))])


@pytest.mark.parametrize(("features", "commits", "most"), [(300, 1, 30), (60, 5, 20), (20, 30, 16)])
def test_merged_heads_are_read_in_bulk(rows: RealmStore, features: int, commits: int, most: int) -> None:
    ids = fan_in(rows, features, commits)

    for one, other in ((ids[-1], ids[1]), (ids[1], ids[-1])):
        found, counts = reads_of_base(rows, one, other)
        assert found == MergeBase(ids[0])
        assert counts.reads <= most
        assert counts.objects <= len(ids)


def test_short_search_reads_no_merged_head_ahead(rows: RealmStore) -> None:
    parents = [(-1,), *chain.from_iterable([(2 * number,), (2 * number, 2 * number + 1)] for number in range(60))]
    parents += [(120,), (120,), (121,), (122,)]
    ids = planted_history(rows, parents, [1_000_000 * number for number in range(len(parents))])
    found, counts = reads_of_base(rows, ids[-1], ids[-2])

    assert found == MergeBase(ids[120])
    assert counts.reads <= 4
    assert counts.objects <= 2 + TAIL + 2


def test_long_parted_histories_are_read_together(rows: RealmStore) -> None:
    parents = [(-1,), (0,), (0,), *((number,) for number in range(1, 799))]
    ids = planted_history(rows, parents, [1_000_000 * number for number in range(len(parents))])
    found, counts = reads_of_base(rows, ids[-1], ids[-2])

    assert found == MergeBase(ids[0])
    assert counts.reads <= 400 // TAIL + 2
    assert counts.objects <= len(ids)


@st.composite
def _histories(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], list[int]]:
    """Any graph, with clocks that step about."""
    count = draw(st.integers(2, 60))
    chance = draw(st.randoms(use_true_random=False))
    branches = draw(st.integers(1, 5))
    heads = [-1] * branches
    parents: list[tuple[int, ...]] = []
    for number in range(count):
        branch = chance.randrange(branches)
        first = heads[branch] if heads[branch] >= 0 else (-1 if not number else chance.randrange(-1, number))
        merged = [chance.randrange(number)] if number and chance.random() < 0.4 else []
        parents.append((first, *merged))
        heads[branch] = number
    return parents, [1_000_000 * (number + chance.randrange(-20, 20)) + 10**9 for number in range(count)]


@pytest.mark.long
@given(_histories(), st.data())
def test_reading_ahead_changes_no_answer(history: tuple[list[tuple[int, ...]], list[int]], data: st.DataObject) -> None:
    with open_store("memory://") as store:
        rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        ids = planted_history(rows, *history)
        into, source = (ids[data.draw(st.integers(0, len(ids) - 1))] for _ in range(2))
        lost = {ids[number] for number in data.draw(st.sets(st.integers(0, len(ids) - 1), max_size=3))} - {into, source}
        rows.delete_unchanged([key for page in rows.scan_objects() for key in page if key.id in lost])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merge_base, "_AHEAD", 0)
            plain, one_by_one = reads_of_base(rows, into, source)
        found, counts = reads_of_base(rows, into, source)

    assert found == plain
    assert counts.reads <= one_by_one.reads + 3
    assert counts.objects <= 2 * one_by_one.objects
