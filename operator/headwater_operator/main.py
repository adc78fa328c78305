"""The command `headwater-operator`: reads settings, starts the process or the self-check, and turns failures into exit codes."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click
import structlog

from headwater.console import Program
from headwater.errors import RefusedError
from headwater.exits import exit_code, stop_at_signals
from headwater.logs import LEVELS, is_log_json, log_to_stderr
from headwater.settings import Settings, unknown_variables
from headwater_operator.runtime.operator_logs import configure_operator_logs
from headwater_operator.runtime.operator_settings import OperatorSettings

EXIT_CODES = {
    0: "done: stopped as asked, or all is as it must be",
    1: "a bug in Headwater: please report it",
    2: "usage: the command line or a setting cannot be understood",
    3: "not found: the custom resource definitions are not there",
    4: "unavailable: the API server or the store gave no answer; a new start may help",
    5: "refused: no cluster to talk to, a right is missing, or the store's URL is wrong",
    6: "the lead was lost: another process acts now",
    7: "the outcome is unknown: look before you do it again",
    8: "the store holds something that cannot be read",
    130: "interrupted",
}


log = structlog.get_logger(__name__)


class OperatorCli(Program):
    program = "headwater-operator"
    debug_advice = ""

    def make_session(self) -> None:
        if is_log_json():  # for what is told before the settings are read, or instead
            log_to_stderr(Settings(log_format="json"), package="headwater_operator")

    def tell(self, lines: Sequence[str], *, level: int, is_debug: bool) -> None:
        if is_log_json():
            log.log(level, " ".join(" ".join(lines).split()), exc_info=is_debug)
        else:
            super().tell(lines, level=level, is_debug=is_debug)


level_option = click.option(
    "--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True, help="What is logged."
)


@click.group(cls=OperatorCli, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Keep realms and catalogs as their resources in Kubernetes declare them."""


@main.command(name="run")
@level_option
def run_command(log_level: str) -> int:
    """Run the operator until SIGTERM. Settings come from HEADWATER_* and HEADWATER_OPERATOR_*."""
    stop = stop_at_signals()  # before the imports below, which take a second or more
    settings, operator_settings = _settings()
    configure_operator_logs(settings, level=LEVELS[log_level])
    _warn_of_unknown_variables()
    from headwater_operator.process import serve_operator

    return serve_operator(settings, operator_settings, stop)


@main.command(name="check")
def check_command() -> int:
    """Look whether everything is there that the operator needs; change nothing.

    Prints a line each for the API server, the custom resources, the rights of this identity, every watch, and the store.
    """
    settings, operator_settings = _settings()
    configure_operator_logs(settings)
    _warn_of_unknown_variables()
    from headwater_operator.kube import KubeApi
    from headwater_operator.self_check import run_self_check as look

    errors = []
    for finding in look(KubeApi.from_environment(), settings, operator_settings):
        click.echo(str(finding))
        errors += [finding.error] if finding.error is not None else []
    return exit_code(errors[0]) if errors else 0


@main.command(name="leftovers")
def leftovers_command() -> int:
    """Refuse while there are Realms or Catalogs that could not be deleted without an operator; the chart asks before it goes."""
    _, operator_settings = _settings()
    from headwater_operator.kube import KubeApi
    from headwater_operator.resource.finalizers import check_leftovers

    check_leftovers(KubeApi.from_environment(), operator_settings)
    return 0


@main.command(name="elect-writer")
@click.option("--server", required=True, metavar="URL", help="The /readyz of the server beside this process.")
@click.option("--pods", required=True, metavar="SELECTOR", help="Labels that select the pods of all servers that contend.")
@level_option
def elect_writer_command(server: str, pods: str, log_level: str) -> int:
    """Contend for being the server that writes, until SIGTERM: the pod that holds the Lease gets the label headwater.dev/writes.

    The chart runs this beside each server. HEADWATER_OPERATOR_LEASE_NAME names the Lease, and POD_NAME the pod.
    """
    stop = stop_at_signals()
    settings, operator_settings = _settings()
    configure_operator_logs(settings, level=LEVELS[log_level])
    _warn_of_unknown_variables()
    from headwater_operator.writer_election import hold_election

    return hold_election(operator_settings, stop, server_url=server, selector=pods)


def _settings() -> tuple[Settings, OperatorSettings]:
    """Both kinds of settings; all faults in either are reported at once.

    raises        UsageError
    """
    faults: list[str] = []
    settings, operator_settings = Settings(), OperatorSettings()
    try:
        settings = Settings.from_environment()
    except RefusedError as wrong:
        faults.append(str(wrong))
    try:
        operator_settings = OperatorSettings.from_environment()
    except RefusedError as wrong:
        faults.append(str(wrong))
    if faults:
        raise click.UsageError("; ".join(faults))
    return settings, operator_settings


def _warn_of_unknown_variables() -> None:
    for sentence in unknown_variables(os.environ, OperatorSettings.variables()):
        log.warning(sentence)
