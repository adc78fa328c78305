"""What every store of file references promises of splits: a reference becomes references of other partitions."""

from __future__ import annotations

import pytest
from reference_stores import assignment, make_file, place_of, places

from fake_clock import FakeClock
from headwater.files import (
    FileNotTrackedError,
    FileReferenceStore,
    PartitionId,
    ReferenceAssignedError,
    ReferenceExistsError,
    ReferenceNotFoundError,
    SplitReference,
    SplitsFailedError,
    split_to_children,
)


def halves(filename: str, partition: str, *, tree_number: int = 0) -> SplitReference:
    left, right = PartitionId(f"{partition}0"), PartitionId(f"{partition}1")
    return split_to_children(place_of(filename, partition), left, right, tree_number=tree_number)


def test_split_reference_moves_to_the_children(references: FileReferenceStore, clock: FakeClock) -> None:
    references.add_files([make_file("a", "r")])
    clock.advance(5)

    references.split_references([halves("a", "r")])

    stored = references.references()
    assert places(references) == [("a", "r0", None), ("a", "r1", None)]
    assert [(each.rows, each.is_estimate, each.is_whole_file, each.updated) for each in stored] == [
        (5, True, False, clock.now()),
        (5, True, False, clock.now()),
    ]


def test_many_references_are_split_at_once(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r"), make_file("b", "r")])

    references.split_references([halves("a", "r"), halves("b", "r")])

    assert [each.partition for each in references.references()] == ["r0", "r1", "r0", "r1"]


def test_reference_is_split_twice_in_one_call(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])

    references.split_references([halves("a", "r"), halves("a", "r0")])

    assert [each.partition for each in references.references()] == ["r00", "r01", "r1"]


def test_split_raises_the_tree_number(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r"), make_file("b", "r")])
    references.split_references([halves("a", "r", tree_number=7)])

    references.split_references([halves("b", "r", tree_number=3)])

    assert references.snapshot().tree_number == 7


def test_split_of_an_unknown_file_is_refused(references: FileReferenceStore) -> None:
    with pytest.raises(SplitsFailedError) as refusal:
        references.split_references([halves("a", "r")])
    assert isinstance(refusal.value.__cause__, FileNotTrackedError)
    assert refusal.value.__cause__.filename == "a"


def test_split_on_another_partition_is_refused(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r0")])

    with pytest.raises(SplitsFailedError) as refusal:
        references.split_references([halves("a", "r1")])
    assert isinstance(refusal.value.__cause__, ReferenceNotFoundError)
    assert (refusal.value.__cause__.filename, refusal.value.__cause__.partition) == ("a", "r1")


def test_split_of_an_assigned_reference_is_refused(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    references.assign_jobs([assignment("job", "r", "a")])

    with pytest.raises(SplitsFailedError) as refusal:
        references.split_references([halves("a", "r")])
    assert isinstance(refusal.value.__cause__, ReferenceAssignedError)
    assert refusal.value.__cause__.job == "job"


def test_split_onto_a_partition_with_the_file_is_refused(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r", "r1")])

    with pytest.raises(SplitsFailedError) as refusal:
        references.split_references([halves("a", "r")])
    assert isinstance(refusal.value.__cause__, ReferenceExistsError)
    assert refusal.value.__cause__.partition == "r1"


def test_refused_split_undoes_its_call(references: FileReferenceStore) -> None:
    references.add_files([make_file("a", "r")])
    splits = [halves("a", "r", tree_number=2), halves("b", "r")]

    with pytest.raises(SplitsFailedError) as refusal:
        references.split_references(splits)
    assert refusal.value.failed == tuple(splits)
    assert refusal.value.successful == ()
    assert places(references) == [("a", "r", None)]
    assert references.snapshot().tree_number == 0


def test_split_of_nothing_opens_no_transaction(references: FileReferenceStore) -> None:
    references.split_references([])

    assert references.counts()["transactions"] == 0
