"""``headwater fsck``: checks everything that is stored, and plans and runs repairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from headwater.api.repairs import keeper_of
from headwater.cli.cli_session import CliSession
from headwater.cli.command_options import FOLDER, confirm_option, live_names
from headwater.console import ResultView, ViewField, prints
from headwater.errors import RefusedError
from headwater.exits import FINDINGS
from headwater.fsck import FsckFinding, RepairStep, check_store, is_bad, plan_repairs, repair_realm
from headwater.redaction import printable
from headwater.store import Store

FINDING: ResultView[FsckFinding] = ResultView(
    "finding",
    "findings",
    (
        ViewField("code", "what kind it is; a contract"),
        ViewField("weight", "DAMAGE, TROUBLE or LEFTOVER; the last alone is no reason to wake anybody"),
        ViewField("realm", "the realm's id"),
        ViewField("subject", "the reference, object, catalog or task"),
        ViewField("keys", "of what cannot be read: the keys under which the reference holds it, the first few", form=list),
        ViewField("message", "what is wrong"),
        ViewField("repair", "what would mend it"),
    ),
    named_by="subject",
)

STEP: ResultView[RepairStep] = ResultView(
    "step",
    "steps",
    (
        ViewField("action", "GO_BACK, COMPLETE_CATALOG, SET_ASIDE, SETTLE_TASKS, WITHDRAW_FLAG, BY_HAND or COLLECT"),
        ViewField("safe", "whether `headwater fsck --repair` does it", "is_safe"),
        ViewField("realm", "the realm's id"),
        ViewField("subject", "what it is done to"),
        ViewField("does", "what it does, or what a person has to do"),
        ViewField("loses", "what is gone after it"),
        ViewField("because", "codes of the [findings](#finding) that it mends", lambda s: [code.value for code in s.because]),
        ViewField("target", "the commit that it goes back to", lambda s: s.target or None),
        ViewField("result", "what came of it; null: not done", lambda s: s.result or None),
    ),
    named_by="subject",
)


@click.command(name="fsck")
@click.option("--realm", metavar="REALM", help="Only this realm.", shell_complete=live_names("complete_realms"))
@click.option("--plan", is_flag=True, help="Show the steps of a repair in their order, and what each does and loses.")
@click.option("--repair", "mend", is_flag=True, help="Do the safe steps of one realm's plan.")
@click.option(
    "--aside",
    metavar="FOLDER",
    type=FOLDER,
    help="With --repair: keep here what is taken off a list because it cannot be read, a file for each.",
)
@click.option("--later", is_flag=True, help="With --plan or --repair: set aside also what a later release has written.")
@confirm_option("REALM")
@prints(FINDING, many=True)
def fsck_command(
    session: CliSession, /, realm: str | None, plan: bool, mend: bool, confirm: str | None, aside: Path | None, later: bool
) -> int:
    """Check everything that is stored, change nothing, and list each finding with its repair.

    Exit code 8 if anything is wrong; left-overs that maintenance clears by itself do not count.

    With --plan it shows steps instead of findings. With --repair and --confirm it does those steps of the realm that are
    safe, which guess nothing and take nothing away that can be read, shows what came of each, and looks again for its exit code.
    """
    if plan and mend:
        raise click.UsageError("--plan shows the steps, and --repair does them: give one of the two")
    if later and not (plan or mend):
        raise click.UsageError("--later goes with --plan or --repair: nothing else of fsck sets anything aside")
    if confirm is not None and not mend:
        raise click.UsageError("--confirm goes with --repair: nothing else of fsck changes anything")
    if aside is not None and not mend:
        raise click.UsageError("--aside goes with --repair: nothing else of fsck takes anything off a list")
    with session.open_store() as store:
        if mend:
            chosen = _confirmed(session, store, realm, confirm, later=later)
            if chosen is not None:
                return _mend(session, store, chosen, aside, later=later)
        findings = _check(session, store, realm)
    if plan:
        _show(session, plan_repairs(findings, later=later))
    else:
        _show_findings(session, findings)
    return FINDINGS if is_bad(findings) else 0


def _check(session: CliSession, store: Store, realm: str | None) -> list[FsckFinding]:
    with session.progress("fsck" if realm is None else f"fsck of realm {realm!r}") as progress:
        return check_store(store, realm=realm, progress=progress)


def _confirmed(session: CliSession, store: Store, realm: str | None, confirm: str | None, *, later: bool) -> str | None:
    """Returns the realm whose id was repeated; None if there is no safe step to confirm.

    raises        RefusedError, after a person was shown the plan
    """
    if confirm is not None and realm in (None, confirm):
        return confirm
    if confirm is not None:
        raise RefusedError(f"nothing was changed: --confirm {confirm} does not repeat the id of realm {realm!r}")
    steps = plan_repairs(_check(session, store, realm), later=later)
    if not any(step.is_safe for step in steps):
        session.warn("there is no safe step to do")
        return None
    _show(session, steps)
    raise RefusedError(
        f"nothing was changed: repeat the realm's id with --confirm {realm or 'REALM'} to do the safe steps of its plan"
    )


def _mend(session: CliSession, store: Store, realm: str, aside: Path | None, *, later: bool) -> int:
    steps = plan_repairs(_check(session, store, realm), later=later)
    done = list(repair_realm(store, realm, steps, keep=keeper_of(aside)))
    _show(session, done)
    left = _check(session, store, realm)
    for finding in left:
        session.warn(f"left: {finding.code} {finding.subject}: {finding.message}")
    return FINDINGS if is_bad(left) else 0


def _show_findings(session: CliSession, findings: Sequence[FsckFinding]) -> None:
    """Print findings, as a list for people."""
    if not session.is_text or not findings:
        session.show_all(FINDING, findings)
        return
    for finding in findings:
        click.echo(printable(f"{finding.weight} {finding.code}: {finding.subject} of {finding.realm}"))
        _echo_texts(what=finding.message, mend=finding.repair)


def _show(session: CliSession, steps: Sequence[RepairStep]) -> None:
    """Print steps; people get a numbered list, because the sentences are too long for columns."""
    if not session.is_text or not steps:
        session.show_all(STEP, steps)
        return
    for number, step in enumerate(steps, 1):
        click.echo(printable(f"{number}. {step.action}{' (safe)' if step.is_safe else ''}: {step.subject} of {step.realm}"))
        _echo_texts(does=step.does, loses=step.loses, result=step.result)


def _echo_texts(**texts: str) -> None:
    for name, text in texts.items():
        if text:
            click.echo(printable(f"   {name}: {text}"))
