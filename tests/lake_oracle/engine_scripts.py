"""Short stories of lakes, each of which shows what some mistakes of an engine lead to."""

from __future__ import annotations

from lake_oracle.foreign_steps import (
    adopt,
    clone_table,
    die_writing,
    import_guest,
    make_decoy,
    put_checksums,
    put_undocumented,
    share_with_others,
    take_up_for_a_while,
)
from lake_oracle.lake_harm import HARMS, stop_other_realm
from lake_oracle.lake_story import ScriptLine
from lake_oracle.ref_steps import collect, create_branch, create_tag, delete_ref, hold_archive
from lake_oracle.table_steps import (
    append,
    create_table,
    create_view,
    expire_by_pyiceberg,
    let_die,
    overwrite,
    replace_view,
    set_statistics,
    tag_snapshot,
)

_BEGIN: tuple[ScriptLine, ...] = (create_table, append, append)
SCRIPTS: dict[str, tuple[ScriptLine, ...]] = {
    "odd names": (*(create_table,) * 6, *(append,) * 8, *(make_decoy,) * 6, "run", *(let_die,) * 4, "run"),
    "guests": (*_BEGIN, clone_table, let_die, "run"),
    "others": (*_BEGIN, *(share_with_others,) * 6, let_die, "run"),
    "others, stopped": (*_BEGIN, *(share_with_others,) * 6, stop_other_realm, let_die, "run"),
    "archives": (*_BEGIN, hold_archive, let_die, let_die, "run"),
    "undocumented": (*_BEGIN, put_undocumented, let_die, "run"),
    "writers": (*(import_guest,) * 8, *(adopt,) * 12, "run"),
    "branches": (*_BEGIN, create_branch, *(append,) * 6, *(delete_ref,) * 3, "run"),
    "tags": (*_BEGIN, create_tag, *(let_die,) * 2, "run"),
    "views": (create_table, create_view, replace_view, "run"),
    "metadata": (
        *_BEGIN,
        set_statistics,
        tag_snapshot,
        overwrite,
        expire_by_pyiceberg,
        *(put_checksums,) * 2,
        "run",
        append,
        "run",
    ),
    "death": (*_BEGIN, "run", let_die, "run", 9, "run", *(die_writing,) * 5, "run", *(let_die,) * 3, "run", 9, "run"),
    "takes": (*_BEGIN, "run", let_die, "run", 9, take_up_for_a_while, "run", collect, "run"),
    "copies": (*_BEGIN, "run", "save", let_die, "run", "roll back", let_die, "run"),
    **{f"harm: {harm.do.__name__}": (*_BEGIN, *_BEGIN, "run", harm.do, "run") for harm in HARMS},
}
