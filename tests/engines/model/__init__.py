"""What must hold, in one place: the promises that simulation, torture, storms, hand-made histories and outcomes judge by.

A promise is a function that returns a line for each place where it is broken. ``PROMISES`` has each with its sentence and the place in
the docs that gives it; ``MUTANTS`` says which promise kills which wrong database. An engine makes things happen and hands over what
was seen; nothing here knows an engine.
"""

from __future__ import annotations

from engines.model.commit_promises import (
    FoundCommit,
    FoundHistory,
    acknowledged_commits_are_there,
    commits_put_one_marker_each,
    commits_take_effect_once,
    commits_were_asked_for,
    history_is_in_order,
    looks_see_what_was_told,
    refused_commits_are_not_there,
)
from engines.model.content_promises import (
    KeyNote,
    Step,
    Told,
    archive_has_the_head_of_its_moment,
    archive_has_the_keys_of_its_moment,
    keys_hold_what_was_told,
)
from engines.model.file_promises import (
    collected_folders_have_no_other_files,
    ended_jobs_hold_no_references,
    late_reads_alone_miss_files,
    queues_run_empty,
    references_of_a_file_do_not_overlap,
    references_stand_for_whole_ingests,
    tables_are_not_damaged,
    tables_have_whole_ingests,
    tree_numbers_go_up,
)
from engines.model.index_promises import index_has_just_its_keys, keys_are_in_order
from engines.model.journal import COMMIT, LOOK, Event, Journal, Outcome, marker_of, read_journals
from engines.model.linearizability import Operation, find_anomaly
from engines.model.mutants import MUTANTS, Mutant
from engines.model.outcome_promises import errors_say_what_became_of_it, outcome_is_as_told
from engines.model.promise import PROMISES, Fault, Promise
from engines.model.realm_walk import Chain, RowWalk, Walk
from engines.model.row_promises import rows_change_at_one_instant
from engines.model.store_promises import (
    HeadSpan,
    Kept,
    deleted_objects_are_not_needed,
    fsck_finds_nothing,
    garbage_is_gone,
    heads_can_be_read,
    purged_realms_have_no_rows,
    readable_seconds,
    recent_heads_are_whole,
    versions_go_up,
)
from engines.model.store_verdict import faults_of_histories, markers_at

__all__ = [
    "COMMIT",
    "LOOK",
    "MUTANTS",
    "PROMISES",
    "Chain",
    "Event",
    "Fault",
    "FoundCommit",
    "FoundHistory",
    "HeadSpan",
    "Journal",
    "Kept",
    "KeyNote",
    "Mutant",
    "Operation",
    "Outcome",
    "Promise",
    "RowWalk",
    "Step",
    "Told",
    "Walk",
    "acknowledged_commits_are_there",
    "archive_has_the_head_of_its_moment",
    "archive_has_the_keys_of_its_moment",
    "collected_folders_have_no_other_files",
    "commits_put_one_marker_each",
    "commits_take_effect_once",
    "commits_were_asked_for",
    "deleted_objects_are_not_needed",
    "ended_jobs_hold_no_references",
    "errors_say_what_became_of_it",
    "faults_of_histories",
    "find_anomaly",
    "fsck_finds_nothing",
    "garbage_is_gone",
    "heads_can_be_read",
    "history_is_in_order",
    "index_has_just_its_keys",
    "keys_are_in_order",
    "keys_hold_what_was_told",
    "late_reads_alone_miss_files",
    "looks_see_what_was_told",
    "marker_of",
    "markers_at",
    "outcome_is_as_told",
    "purged_realms_have_no_rows",
    "queues_run_empty",
    "read_journals",
    "readable_seconds",
    "recent_heads_are_whole",
    "references_of_a_file_do_not_overlap",
    "references_stand_for_whole_ingests",
    "refused_commits_are_not_there",
    "rows_change_at_one_instant",
    "tables_are_not_damaged",
    "tables_have_whole_ingests",
    "tree_numbers_go_up",
    "versions_go_up",
]
