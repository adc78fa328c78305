"""``headwater diff`` and ``headwater delete``: manifests against what is stored, and the deletion of what they describe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from headwater.api.manifest_work import ManifestDifference, compare_manifests, read_manifests
from headwater.cli.apply_command import APPLIED, carry_out, credentials_option, given_manifests, manifests_option
from headwater.cli.cli_session import CliSession
from headwater.console import ResultView, ViewField, list_of, prints
from headwater.errors import RefusedError
from headwater.exits import DIFFERENCES
from headwater.reconcile import FieldDifference, FileCredentials, UnwrittenCredentials, as_deletion
from headwater.typed_values import decode_json

_NOTHING = "nothing is left to delete"


def _field(difference: FieldDifference) -> dict[str, Any]:
    return {"field": difference.field, "stored": difference.stored, "declared": difference.declared}


MANIFEST_DIFFERENCE: ResultView[ManifestDifference] = ResultView(
    "difference of a manifest",
    "differences",
    (
        ViewField("subject", "kind and name of the manifest"),
        ViewField("different", "whether anything differs", "is_different"),
        ViewField("missing", "there is no such realm or catalog", "is_missing"),
        ViewField(
            "fields",
            "fields that differ, in the words of the manifest",
            form=list_of(_field),
            inside={
                "[].field": "such as retention.content.age, roles.analysts.privileges or policies.snapshots[etl/*].maxAge",
                "[].stored": "its value as JSON; null: it has none",
                "[].declared": "what the manifest says, as JSON; null: nothing",
            },
        ),
        ViewField("steps", "what else would be done: creation, deletion, credentials, a sentence each"),
        ViewField("refused", "why something of it would not be done"),
    ),
)


@click.command(name="diff")
@manifests_option
@prints(MANIFEST_DIFFERENCE, many=True)
def diff_manifests_command(session: CliSession, paths: tuple[str, ...]) -> int:
    """Compare manifests with what is stored, and write nothing.

    Exit code 0 if there is no difference, 9 if there is one.
    """
    with session.open_dry_store() as store:
        differences = compare_manifests(store, read_manifests(store, given_manifests(session, paths)))
    data = list(map(MANIFEST_DIFFERENCE.data, differences))
    session.print_result(data, lambda: list(_difference_lines(differences)) or ["no differences"])
    return DIFFERENCES if any(difference.is_different for difference in differences) else 0


def _difference_lines(differences: Sequence[ManifestDifference]) -> Iterator[str]:
    for difference in differences:
        if not difference.is_different and not difference.refused:
            continue
        yield f"{difference.subject}:" + (" is not there" if difference.is_missing else "")
        for each in difference.fields:
            yield from _field_lines(each)
        yield from (f"  would {step}" for step in difference.steps)
        yield from (f"  refused: {reason}" for reason in difference.refused)


def _field_lines(difference: FieldDifference) -> Iterator[str]:
    """The values before and after; of what has no order, what goes and what comes."""
    if not (difference.is_set and difference.stored and difference.declared):
        yield f"  {difference.field}: {_text(difference.stored)} → {_text(difference.declared)}"
        return
    stored, declared = (decode_json(text, list[str]) for text in (difference.stored, difference.declared))
    yield f"  {difference.field}:"
    yield from (f"    - {text}" for text in stored if text not in declared)
    yield from (f"    + {text}" for text in declared if text not in stored)


def _text(value: str | None) -> str:
    return "(nothing)" if value is None else value


@click.command(name="delete")
@manifests_option
@credentials_option
@click.option("--yes", "is_agreed", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
@prints(APPLIED, many=True)
def delete_manifests_command(session: CliSession, paths: tuple[str, ...], folder: Path, is_agreed: bool, dry_run: bool) -> int:
    """Delete the realms and catalogs that manifests describe, as their deletionPolicy says.

    Retain leaves everything as it is, without a manager. Purge deletes what is in it, and needs the annotation
    headwater.dev/confirm-purge with the name of the realm or catalog. It is shown what would be done, and asked for at a terminal.
    """
    with session.open_store() as store:
        manifests = [as_deletion(manifest) for manifest in read_manifests(store, given_manifests(session, paths))]
    if dry_run or not is_agreed:
        with session.open_dry_store() as dry:
            code = carry_out(session, dry, manifests, UnwrittenCredentials(folder), is_dry_run=True, settled=_NOTHING)
        if dry_run or code:
            return code
        _ask(session)
    with session.open_store() as store:
        return carry_out(session, store, manifests, FileCredentials(folder), settled=_NOTHING)


def _ask(session: CliSession) -> None:
    """Go on if a person agrees; raises RefusedError otherwise, and where there is nobody to ask."""
    if not session.can_ask:
        raise RefusedError("nothing was deleted: give --yes to go ahead, or answer at a terminal")
    if not click.confirm("Go ahead?", err=True):
        raise RefusedError("nothing was deleted")
