"""The root of `kubectl headwater`: options that every command takes, and failures as exit codes."""

from __future__ import annotations

import click

from headwater.console import Program
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


class Application(Program):
    program = "kubectl headwater"

    def begin(self) -> Session:
        return Session()


@click.group(name="headwater", cls=Application, context_settings={"help_option_names": ["-h", "--help"]})
@cluster_options
@click.option("--debug", is_flag=True, help="Show the traceback of a failure.")
@click.pass_obj
def main(session: Session, debug: bool) -> None:
    """Look after Headwater's realms and catalogs in a cluster."""
    session.debug = debug


for _command in (gc, plan, purge, release, report, status):
    main.add_command(_command)
