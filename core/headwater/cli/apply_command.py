"""``headwater apply``: one pass over manifests, without workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from headwater.cli.cli_session import CliSession, lines_of
from headwater.console import ResultView, ViewField, list_of, prints, text_field, time_after
from headwater.errors import RefusedError
from headwater.exits import exit_code
from headwater.reconcile import (
    FileCredentials,
    ManagerIdentity,
    ReconcileOutcome,
    RefuseManifest,
    ReportDrift,
    WaitUntil,
    known_realms,
    load_manifests,
    reconcile,
)

_NOTICE = {"[].reason": "one word for programs", "[].message": "a sentence for people"}


def _notice(notice: RefuseManifest | ReportDrift) -> dict[str, Any]:
    return {"reason": notice.reason, "message": notice.message}


def _wait(wait: WaitUntil) -> dict[str, Any]:
    return {"reason": wait.reason, "message": wait.message, "until": time_after(wait.until)}


APPLIED: ResultView[ReconcileOutcome] = ResultView(
    "outcome of a manifest",
    "manifests",
    (
        ViewField("subject", "kind and name of the manifest"),
        ViewField("done", "a sentence for each step that was taken"),
        ViewField(
            "waits",
            "what cannot be done yet",
            form=list_of(_wait),
            inside=_NOTICE | {"[].until": "then it can be done; null when it is not a matter of time alone"},
        ),
        ViewField("refused", "what will not be done as asked", form=list_of(_notice), inside=_NOTICE),
        ViewField("reports", "what a person should know, and is left as it is", form=list_of(_notice), inside=_NOTICE),
        ViewField("error", "why it could not be finished", form=text_field),
    ),
)


@click.command(name="apply")
@click.option(
    "-f",
    "--file",
    "paths",
    metavar="PATH",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file of manifests, or a folder of such files; may be repeated.",
)
@click.option(
    "--credentials",
    "folder",
    metavar="FOLDER",
    default="credentials",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the credentials of new realms and principals are written, a file each, readable by you only.",
)
@prints(APPLIED, many=True)
def apply_command(session: CliSession, paths: tuple[Path, ...], folder: Path) -> int:
    """Apply manifests, as far as possible now; long work is left to workers, as tasks.

    If anything in the files is wrong, nothing is changed.
    """
    with session.create_store(lambda: load_manifests(paths, settings=session.settings)) as store:
        manifests = load_manifests(paths, settings=session.settings, known_realms=known_realms(store))
        is_text = session.is_text
        outcomes = reconcile(
            store,
            manifests,
            credentials=FileCredentials(folder),
            manager=ManagerIdentity(),
            tell=(lambda subject, sentence: click.echo(f"{subject}: {sentence}")) if is_text else None,
        )
    if is_text:
        _print_rest(outcomes)
    else:
        session.show_all(APPLIED, outcomes)
    for outcome in outcomes:
        for line in _complaints(outcome):
            session.warn(f"{outcome.subject}: {line}")
    return max(map(_code, outcomes), default=0)


def _print_rest(outcomes: list[ReconcileOutcome]) -> None:
    """Print what is left to do, after what was done; a manifest with nothing to report gets a line of its own."""
    for outcome in outcomes:
        for wait in outcome.waits:
            until = f" (until {time_after(wait.until)})" if wait.until is not None else ""
            click.echo(f"{outcome.subject}: waits: {wait.message}{until}")
        for report in outcome.reports:
            click.echo(f"{outcome.subject}: {report.message}")
        if outcome.is_settled and not outcome.done and not outcome.reports:
            click.echo(f"{outcome.subject}: as it should be")


def _complaints(outcome: ReconcileOutcome) -> list[str]:
    refused = [refusal.message for refusal in outcome.refused]
    return refused + (lines_of(outcome.error) if outcome.error is not None else [])


def _code(outcome: ReconcileOutcome) -> int:
    if outcome.error is not None:
        return exit_code(outcome.error)
    return exit_code(RefusedError()) if outcome.refused else 0
