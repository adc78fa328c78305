"""Splits and reads over two databases, met and interrupted between any two calls: no row is lost, and none comes twice."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import pytest
from stepped_tables import CallSteps, TableWorld, encode, interruptions

from headwater.errors import RefusedError
from headwater.files import AssignJob, CommitJob, FileReference, FileTable, PartitionId, TreeBehindError
from tiers import Sample

ROOT, LEFT, RIGHT = PartitionId("r"), PartitionId("r0"), PartitionId("r1")


@pytest.fixture
def world(tmp_path: Path) -> TableWorld:
    """A table of one leaf, with two files."""
    world = TableWorld(tmp_path)
    world.create()
    world.ingest("a", [1, 3, 5, 7, 9], "r")
    world.ingest("b", [2, 3, 4, 100], "r")
    return world


def split(table: FileTable) -> None:
    table.split_leaves({ROOT: encode(5), LEFT: encode(3)})


def split_root(table: FileTable) -> None:
    table.split_leaves({ROOT: encode(5)})


def partitions(world: TableWorld) -> set[str]:
    return {reference.partition for reference in world.use(lambda table: table.references.references())}


def test_split_moves_all_references_to_the_leaves(world: TableWorld) -> None:
    world.use(split)

    assert partitions(world) == {"r00", "r01", "r1"}
    assert world.rows() == world.ingested


def test_interrupted_split_reads_the_same_and_is_completed(world: TableWorld, sample: Sample) -> None:
    killed = interruptions(world, lambda other, steps: other.use(split, steps))

    for other in sample.one_in(3, killed):
        assert other.rows() == other.ingested
        other.use(split)
        assert other.rows() == other.ingested
        assert partitions(other) == {"r00", "r01", "r1"}


def test_next_split_completes_an_interrupted_one(world: TableWorld, sample: Sample) -> None:
    def split_further(table: FileTable) -> None:
        if table.read_tree().is_leaf(ROOT):
            table.split_leaves({ROOT: encode(5)})
        table.split_leaves({RIGHT: encode(8)})

    for other in sample.one_in(3, interruptions(world, lambda other, steps: other.use(split_root, steps))):
        other.use(split_further)
        assert other.rows() == other.ingested
        assert partitions(other) == {"r0", "r10", "r11"}


def test_reader_that_a_split_overtakes_gets_all_rows(world: TableWorld, tmp_path: Path) -> None:
    for at in itertools.count(1):
        other = world.copy(tmp_path / f"met-{at}")
        steps = CallSteps(at, partial(other.use, split))
        assert other.use(other.read_rows, steps) == other.ingested
        if not steps.was_reached:
            break
    assert at > 3


def test_split_that_another_split_overtakes_loses_nothing(world: TableWorld, tmp_path: Path, sample: Sample) -> None:
    for at in sample.one_in(3, range(1, 40)):
        other = world.copy(tmp_path / f"met-{at}")
        other.use(split_root, CallSteps(at, partial(other.use, split_root)))
        assert other.rows() == other.ingested
        assert partitions(other) == {"r0", "r1"}


def test_file_of_a_late_writer_is_read_and_moved_down(world: TableWorld) -> None:
    world.use(split)
    world.ingest("late", [0, 3, 6], "r")
    assert world.rows() == world.ingested

    moved = [world.use(FileTable.push_down_references) for _ in range(2)]

    assert moved == [1, 0]
    assert world.rows() == world.ingested


def test_reference_of_a_running_job_stays_until_its_output_comes(world: TableWorld) -> None:
    world.use(lambda table: table.references.assign_jobs([AssignJob(job="j", partition=ROOT, filenames=("a", "b"))]))
    world.use(split)
    assert partitions(world) == {"r"}
    assert world.rows() == world.ingested

    world.files = {"c": sorted(world.ingested.elements())}
    output = FileReference(filename="c", partition=ROOT, rows=9)
    world.use(lambda table: table.references.commit_jobs([CommitJob(job="j", inputs=("a", "b"), output=output)]))
    assert world.rows() == world.ingested
    world.use(FileTable.push_down_references)
    assert partitions(world) == {"r00", "r01", "r1"}


def test_interrupted_creation_is_completed(tmp_path: Path, sample: Sample) -> None:
    for other in sample.one_in(3, interruptions(TableWorld(tmp_path), lambda other, steps: other.create(steps))):
        other.create()
        other.ingest("a", [1, 2], "r")
        assert other.rows() == other.ingested


def test_tree_of_an_older_backup_is_refused(world: TableWorld, tmp_path: Path) -> None:
    backup = world.copy(tmp_path / "backup")
    world.use(split)
    world.backend = backup.backend

    with pytest.raises(TreeBehindError, match=r"references are of change 2 .* newest tree is that of change 1") as caught:
        world.rows()
    assert (caught.value.tree_number, caught.value.references_number) == (1, 2)


def test_partition_that_an_older_backup_lacks_is_refused(world: TableWorld, tmp_path: Path) -> None:
    """An ingest into a new leaf does not tell the number of the tree."""
    backup = world.copy(tmp_path / "backup")
    world.files.clear()
    world.use(lambda table: table.references.clear_files())
    world.use(split_root)
    world.ingest("c", [1], "r0")
    world.backend = backup.backend

    with pytest.raises(TreeBehindError, match="partition 'r0' refers to files"):
        world.rows()


def test_references_of_an_older_backup_read_with_a_newer_tree(world: TableWorld, tmp_path: Path) -> None:
    backup = world.copy(tmp_path / "backup")
    world.use(split)
    backup.backend = world.backend

    assert backup.rows() == backup.ingested


def test_split_of_no_leaf_is_refused(world: TableWorld) -> None:
    world.use(split)

    with pytest.raises(RefusedError, match="was split already"):
        world.use(lambda table: table.split_leaves({LEFT: encode(4)}))
