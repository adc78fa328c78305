"""``headwater apply``: one pass over manifests, without workers."""

from __future__ import annotations

from pathlib import Path

import click

from headwater.cli.cli_session import CliSession, lines_of
from headwater.cli.command_options import prints
from headwater.cli.result_output import time_after
from headwater.cli.result_views import APPLIED
from headwater.errors import RefusedError
from headwater.exits import exit_code
from headwater.reconcile import FileCredentials, ManagerIdentity, ReconcileOutcome, known_realms, load_manifests, reconcile


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
    help="Where root credentials of new realms are written, one file a realm, readable by you only.",
)
@prints(APPLIED, many=True)
@click.pass_context
def apply_command(ctx: click.Context, paths: tuple[Path, ...], folder: Path) -> None:
    """Apply manifests, as far as possible now; long work is left to workers, as tasks.

    If anything in the files is wrong, nothing is changed.
    """
    session = ctx.ensure_object(CliSession)
    with session.create_store(lambda: load_manifests(paths, settings=session.settings)) as store:
        manifests = load_manifests(paths, settings=session.settings, known_realms=known_realms(store))
        told = session.output == "table"
        outcomes = reconcile(
            store,
            manifests,
            credentials=FileCredentials(folder),
            manager=ManagerIdentity(),
            tell=(lambda subject, sentence: click.echo(f"{subject}: {sentence}")) if told else None,
        )
    if told:
        _print_rest(outcomes)
    else:
        session.show_all(APPLIED, outcomes)
    for outcome in outcomes:
        for line in _complaints(outcome):
            session.warn(f"{outcome.subject}: {line}")
    ctx.exit(max(map(_code, outcomes), default=0))


def _print_rest(outcomes: list[ReconcileOutcome]) -> None:
    """Print what is left to do, after what was done; a manifest with nothing to report gets a line of its own."""
    if not outcomes:
        click.echo(f"no {APPLIED.plural}")
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
