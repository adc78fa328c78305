"""``headwater apply``: one pass over manifests, without workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from headwater.api.manifest_work import planned_sentences, read_manifests
from headwater.cli.cli_session import CliSession, lines_of
from headwater.cli.command_options import FOLDER
from headwater.console import ResultView, ViewField, list_of, prints, time_after
from headwater.errors import RefusedError
from headwater.exits import exit_code
from headwater.reconcile import (
    CredentialsSink,
    FileCredentials,
    ManagerIdentity,
    Manifest,
    ManifestText,
    ReconcileOutcome,
    RefuseManifest,
    ReportDrift,
    UnwrittenCredentials,
    WaitUntil,
    load_manifests,
    reconcile,
)
from headwater.store import Store

F = TypeVar("F", bound=Callable[..., Any])
_NOTICE = {"[].reason": "one word for programs", "[].message": "a sentence for people"}


def _notice(notice: RefuseManifest | ReportDrift) -> dict[str, Any]:
    return {"reason": notice.reason, "message": notice.message}


def _wait(wait: WaitUntil) -> dict[str, Any]:
    return {"reason": wait.reason, "message": wait.message, "until": time_after(wait.until)}


@dataclass(frozen=True, slots=True)
class AppliedManifest:
    """The outcome of one manifest. In a dry run its steps are those that would be taken."""

    outcome: ReconcileOutcome
    is_dry_run: bool = False


def _done(applied: AppliedManifest) -> list[str]:
    return planned_sentences(applied.outcome) if applied.is_dry_run else list(applied.outcome.done)


APPLIED: ResultView[AppliedManifest] = ResultView(
    "outcome of a manifest",
    "manifests",
    (
        ViewField("subject", "kind and name of the manifest", "outcome.subject"),
        ViewField("dryRun", "nothing was written: what stands in done would be done", "is_dry_run"),
        ViewField("done", "a sentence for each step that was taken, or that would be", _done),
        ViewField(
            "waits",
            "what cannot be done yet",
            "outcome.waits",
            form=list_of(_wait),
            inside=_NOTICE | {"[].until": "then it can be done; null when it is not a matter of time alone"},
        ),
        ViewField("refused", "what will not be done as asked", "outcome.refused", form=list_of(_notice), inside=_NOTICE),
        ViewField(
            "reports",
            "what a person should know, and is left as it is",
            "outcome.reports",
            form=list_of(_notice),
            inside=_NOTICE,
        ),
        ViewField("error", "why it could not be finished", "outcome.error_text"),
    ),
)


manifests_option: Callable[[F], F] = click.option(
    "-f",
    "--file",
    "paths",
    metavar="PATH",
    required=True,
    multiple=True,
    type=click.Path(),
    help="A file of manifests, a folder of such files, or - for standard input; may be repeated.",
)
credentials_option: Callable[[F], F] = click.option(
    "--credentials",
    "folder",
    metavar="FOLDER",
    default="credentials",
    show_default=True,
    type=FOLDER,
    help="Where the credentials of new realms and principals are written, a file each, readable by you only.",
)


@click.command(name="apply")
@manifests_option
@credentials_option
@click.option("--dry-run", is_flag=True, help="Show what each manifest would do now, and write nothing.")
@prints(APPLIED, many=True)
def apply_command(session: CliSession, paths: tuple[str, ...], folder: Path, dry_run: bool) -> int:
    """Apply manifests, as far as possible now; long work is left to workers, as tasks.

    If anything in the files is wrong, nothing is changed. The exit code of a dry run is that which applying would have now.
    """
    if dry_run:
        with session.open_dry_store() as store:
            manifests = read_manifests(store, given_manifests(session, paths))
            return carry_out(session, store, manifests, UnwrittenCredentials(folder), is_dry_run=True)
    with session.create_store(lambda: load_manifests(given_manifests(session, paths), settings=session.settings)) as store:
        manifests = read_manifests(store, given_manifests(session, paths))
        return carry_out(session, store, manifests, FileCredentials(folder))


def given_manifests(session: CliSession, paths: Sequence[str]) -> list[Path | ManifestText]:
    """The manifests that paths name, where ``-`` is standard input.

    raises        RefusedError for a standard input without anything: what should have filled it has failed
    """
    if "-" in paths and not session.standard_input.strip():
        raise RefusedError("standard input is empty: there is no manifest in it")
    return [ManifestText("standard input", session.standard_input) if path == "-" else Path(path) for path in paths]


def carry_out(
    session: CliSession,
    store: Store,
    manifests: Sequence[Manifest],
    credentials: CredentialsSink,
    *,
    is_dry_run: bool = False,
    settled: str = "as it should be",
) -> int:
    """Carry manifests out on a store, or on one that forgets it, and show the outcome; returns the exit code.

    settled       what is said of a manifest with nothing to do
    """
    is_text = session.is_text
    outcomes = reconcile(
        store,
        manifests,
        credentials=credentials,
        manager=ManagerIdentity(),
        tell=(lambda subject, sentence: click.echo(f"{subject}: {sentence}")) if is_text and not is_dry_run else None,
    )
    if is_text:
        for outcome in outcomes if is_dry_run else ():
            for sentence in planned_sentences(outcome):
                click.echo(f"{outcome.subject}: would {sentence}")
        _print_rest(outcomes, settled)
    else:
        session.show_all(APPLIED, [AppliedManifest(outcome, is_dry_run) for outcome in outcomes])
    for outcome in outcomes:
        for line in _complaints(outcome):
            session.warn(f"{outcome.subject}: {line}")
    return max(map(_code, outcomes), default=0)


def _print_rest(outcomes: list[ReconcileOutcome], settled: str) -> None:
    """Print what is left to do, after what was done; a manifest with nothing to report gets a line of its own."""
    for outcome in outcomes:
        for wait in outcome.waits:
            until = f" (until {time_after(wait.until)})" if wait.until is not None else ""
            click.echo(f"{outcome.subject}: waits: {wait.message}{until}")
        for report in outcome.reports:
            click.echo(f"{outcome.subject}: {report.message}")
        if outcome.is_settled and not outcome.done and not outcome.reports:
            click.echo(f"{outcome.subject}: {settled}")


def _complaints(outcome: ReconcileOutcome) -> list[str]:
    refused = [refusal.message for refusal in outcome.refused]
    return refused + [line for error in outcome.errors for line in lines_of(error)]


def _code(outcome: ReconcileOutcome) -> int:
    if outcome.error is not None:
        return exit_code(outcome.error)
    return exit_code(RefusedError()) if outcome.refused else 0
