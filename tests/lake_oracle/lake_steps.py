"""All steps of random lakes, by how often each is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lake_oracle import foreign_steps, ref_steps, table_steps
from lake_oracle.random_lake import RandomLake


@dataclass(frozen=True, slots=True)
class LakeStep:
    do: Callable[[RandomLake], str]
    weight: int = 2


STEPS = (
    LakeStep(table_steps.create_table, 4),
    LakeStep(table_steps.append, 10),
    LakeStep(table_steps.overwrite, 6),
    LakeStep(table_steps.delete_rows, 3),
    LakeStep(table_steps.tag_snapshot),
    LakeStep(table_steps.expire_by_pyiceberg, 3),
    LakeStep(table_steps.expire_by_headwater, 3),
    LakeStep(table_steps.change_foreign, 3),
    LakeStep(table_steps.move_table, 1),
    LakeStep(table_steps.rename),
    LakeStep(table_steps.drop),
    LakeStep(ref_steps.create_branch, 3),
    LakeStep(ref_steps.create_tag),
    LakeStep(ref_steps.delete_ref, 4),
    LakeStep(ref_steps.undelete_branch),
    LakeStep(ref_steps.merge, 3),
    LakeStep(ref_steps.restore, 3),
    LakeStep(ref_steps.move_branch, 1),
    LakeStep(table_steps.create_view, 1),
    LakeStep(table_steps.replace_view),
    LakeStep(table_steps.set_statistics),
    LakeStep(foreign_steps.share_files, 5),
    LakeStep(foreign_steps.take_up, 4),
    LakeStep(foreign_steps.take_up_for_a_while, 6),
    LakeStep(foreign_steps.share_with_others),
    LakeStep(foreign_steps.clone_table, 3),
    LakeStep(foreign_steps.import_guest, 3),
    LakeStep(table_steps.let_die, 5),
    LakeStep(foreign_steps.adopt),
    LakeStep(foreign_steps.put_undocumented),
    LakeStep(foreign_steps.die_writing, 3),
    LakeStep(foreign_steps.make_decoy, 3),
    LakeStep(foreign_steps.put_checksums),
    LakeStep(table_steps.age_files),
    LakeStep(ref_steps.collect, 4),
    LakeStep(ref_steps.hold_archive, 1),
    LakeStep(ref_steps.delete_other_catalog, 1),
)
