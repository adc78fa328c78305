"""The root of `kubectl headwater`: options that every command takes, and failures as exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import click

from headwater.errors import HeadwaterError
from headwater.exits import exit_code
from headwater_operator.plugin.collecting import gc
from headwater_operator.plugin.options import cluster_options
from headwater_operator.plugin.planning import plan
from headwater_operator.plugin.purging import purge
from headwater_operator.plugin.releasing import release
from headwater_operator.plugin.reporting import report
from headwater_operator.plugin.session import Session
from headwater_operator.plugin.showing import status

__all__ = ["EXIT_CODES", "main"]

EXIT_CODES = {
    0: "done; for `status`: all is well",
    1: "a bug in Headwater: please report it",
    2: "usage: the command line cannot be understood",
    3: "not found: the resource is not there",
    4: "unavailable: the API server or the operator gave no answer; try again later",
    5: "refused: a rule forbids it, the state is wrong, or a confirmation is missing",
    6: "conflict: somebody else changed it meanwhile; look again, then decide again",
    7: "the outcome is unknown: look before you do it again",
    8: "findings: a condition is bad, a plan is refused, or work has failed",
    130: "interrupted",
}


class Application(click.Group):
    """A group that ends with the documented exit codes. What a command returns is its code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # whoever read the output has gone, as `head` does; what is left of it goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **options: Any) -> NoReturn:  # type: ignore[override]
        session = Session()
        options |= {"standalone_mode": False, "obj": session}
        try:
            result = super().main(args, prog_name or "kubectl headwater", **options)
            code = result if isinstance(result, int) else 0
        except click.exceptions.NoArgsIsHelpError as missing:
            missing.show()
            code = missing.exit_code
        except click.ClickException as wrong:
            code = _say_usage(wrong)
        except (click.Abort, KeyboardInterrupt):
            code = _say("interrupted", 130)
        except HeadwaterError as error:
            code = _say(str(error), exit_code(error), session)
        except Exception as bug:  # noqa: BLE001 - the door: whatever comes out here is a bug, and is told as one
            code = _say(f"a bug: {type(bug).__name__}: {bug}; run again with --debug for the traceback", 1, session)
        sys.exit(code)


@click.group(name="headwater", cls=Application, context_settings={"help_option_names": ["-h", "--help"]})
@cluster_options
@click.option("--debug", is_flag=True, help="Show the traceback of a failure.")
@click.pass_obj
def main(session: Session, debug: bool) -> None:
    """Look after Headwater's realms and catalogs in a cluster."""
    session.debug = debug


for _command in (gc, plan, purge, release, report, status):
    main.add_command(_command)


def _say_usage(wrong: click.ClickException) -> int:
    ctx = wrong.ctx if isinstance(wrong, click.UsageError) else None
    where = f"; see `{ctx.command_path} --help`" if ctx else ""
    return _say(f"{wrong.format_message().rstrip('.')}{where}", wrong.exit_code if isinstance(wrong, click.UsageError) else 2)


def _say(text: str, code: int, session: Session | None = None) -> int:
    """Tell a failure on standard error, in one line; with ``--debug`` where it comes from, too."""
    if session is not None and session.debug:
        sys.excepthook(*cast(Any, sys.exc_info()))
    click.echo(f"kubectl headwater: {' '.join(text.split())}", err=True)
    return code
