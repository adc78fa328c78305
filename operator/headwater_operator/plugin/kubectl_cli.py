"""The root of `kubectl headwater`: options that every command takes, and failures as exit codes."""

from __future__ import annotations

import click

from headwater.console import Program, debug_option
from headwater_operator.plugin.cluster_session import ClusterSession, cluster_options
from headwater_operator.plugin.gc_command import gc_command
from headwater_operator.plugin.plan_command import plan_command
from headwater_operator.plugin.purge_command import purge_command
from headwater_operator.plugin.release_command import release_command
from headwater_operator.plugin.status_command import status_command
from headwater_operator.plugin.support_bundle import report_command

EXIT_CODES = {
    0: "done; for `status`: all is well",
    1: "a bug in Headwater: please report it",
    2: "usage: the command line cannot be understood",
    3: "not found: the resource is not there",
    4: "unavailable: the API server or the operator gave no answer; try again later",
    5: "refused: a rule forbids it, the state is wrong, or a confirmation is missing",
    6: "conflict: it changed since you read it; re-read it and retry",
    7: "the outcome is unknown: look before you do it again",
    8: "findings: a condition is bad, a plan is refused, or work has failed",
    130: "interrupted",
}


class KubectlCli(Program):
    program = "kubectl headwater"

    def make_session(self) -> ClusterSession:
        return ClusterSession()


@click.group(name="headwater", cls=KubectlCli, context_settings={"help_option_names": ["-h", "--help"]})
@cluster_options
@debug_option
def main() -> None:
    """Look after Headwater's realms and catalogs in a cluster."""


for _command in (gc_command, plan_command, purge_command, release_command, report_command, status_command):
    main.add_command(_command)
