"""A file table on whose leaves jobs end at once, and what it must look like when all of them have an outcome."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.files import (
    AssignJob,
    CommitJob,
    FileReference,
    FileReferenceStore,
    FileScope,
    PartitionId,
    TrackedFile,
    open_file_references,
)
from headwater.store import RealmKey, Store

__all__ = ["CrowdedTable"]

ROWS = 10


@dataclass(frozen=True)
class CrowdedTable:
    """Each job replaces the references of its leaf to all files.

    leaves        of which every tenth is assigned to another job: its commit is refused
    """

    scope: FileScope
    leaves: int = 20
    files: int = 3

    @classmethod
    def create(cls, store: Store, *, table: str = "a", leaves: int = 20) -> CrowdedTable:
        created = cls(FileScope(RealmKey(store.new_id()), table.rjust(16, "0")), leaves)
        created.load(open_file_references(store, created.scope, create=True))
        return created

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(f"in-{number}" for number in range(self.files))

    @property
    def jobs(self) -> list[CommitJob]:
        return [self.job(number) for number in range(self.leaves)]

    def job(self, number: int) -> CommitJob:
        output = FileReference(filename=f"out-{number}", partition=self._leaf(number), rows=ROWS * self.files)
        return CommitJob(job=f"job-{number}", inputs=self.inputs, output=output)

    def is_assigned(self, number: int) -> bool:
        return number % 10 != 9

    def load(self, references: FileReferenceStore) -> None:
        leaves = [self._leaf(number) for number in range(self.leaves)]
        references.add_files(
            [
                TrackedFile(
                    filename=name,
                    references=tuple(
                        FileReference(filename=name, partition=leaf, rows=ROWS, is_whole_file=False) for leaf in leaves
                    ),
                )
                for name in self.inputs
            ]
        )
        references.assign_jobs(
            [AssignJob(job=self._holder(number), partition=leaf, filenames=self.inputs) for number, leaf in enumerate(leaves)]
        )

    def faults(self, references: FileReferenceStore) -> list[str]:
        """What differs from a model after all jobs have an outcome."""
        stored = {(each.filename, each.partition, each.rows, each.job) for each in references.references()}
        model = {(f"out-{number}", self._leaf(number), ROWS * self.files, None) for number in range(self.leaves)}
        model = {row for number, row in enumerate(sorted(model, key=lambda row: int(row[0][4:]))) if self.is_assigned(number)}
        model |= {
            (name, self._leaf(number), ROWS, self._holder(number))
            for number in range(self.leaves)
            if not self.is_assigned(number)
            for name in self.inputs
        }
        found = references.find_outcomes([job.job for job in self.jobs])
        states = {number: found[f"job-{number}"].state.value for number in range(self.leaves) if f"job-{number}" in found}
        wanted = {number: "APPLIED" if self.is_assigned(number) else "REFUSED" for number in range(self.leaves)}
        faults = [f"reference {row}" for row in sorted(stored ^ model, key=str)]
        return faults + [f"outcome of job {number}" for number in wanted if states.get(number) != wanted[number]]

    def _holder(self, number: int) -> str:
        return f"job-{number}" if self.is_assigned(number) else f"other-{number}"

    def _leaf(self, number: int) -> PartitionId:
        return PartitionId(f"leaf-{number}")
