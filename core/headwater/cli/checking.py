"""``headwater fsck``: whether everything that is stored is as it must be."""

from __future__ import annotations

import click

from headwater.cli.failures import FINDINGS
from headwater.cli.options import prints
from headwater.cli.reports import FINDING
from headwater.cli.session import Session
from headwater.maintenance import check_store, is_bad

__all__ = ["fsck"]


@click.command()
@click.option("--realm", metavar="REALM", help="Only this realm.")
@prints(FINDING, many=True)
@click.pass_context
def fsck(ctx: click.Context, realm: str | None) -> None:
    """Read everything, change nothing, and list what is wrong with what would mend it.

    Exit code 8 if anything is wrong; left-overs that maintenance clears by itself do not count.
    """
    session = ctx.ensure_object(Session)
    with session.open_store() as store:
        findings = check_store(store, realm=realm)
    session.show_all(FINDING, findings)
    ctx.exit(FINDINGS if is_bad(findings) else 0)
