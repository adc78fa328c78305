"""The root of the command tree: global options, commands of other packages, and failures as exit codes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

import click
import structlog

from headwater.cli.access_commands import access
from headwater.cli.apply_command import apply_command
from headwater.cli.catalog_commands import catalog
from headwater.cli.cli_session import CliSession, is_log_json, lines_of, print_note
from headwater.cli.client_config_command import client_config_command
from headwater.cli.file_table_commands import file_table
from headwater.cli.fsck_command import fsck_command
from headwater.cli.gc_commands import gc
from headwater.cli.grant_commands import grant
from headwater.cli.import_commands import import_report_command, import_tables_command
from headwater.cli.lake_file_commands import files
from headwater.cli.maintenance_commands import maintenance
from headwater.cli.policy_commands import policy
from headwater.cli.principal_commands import principal
from headwater.cli.realm_commands import realm
from headwater.cli.role_commands import role
from headwater.cli.snapshot_commands import snapshots
from headwater.cli.store_commands import store, version_command
from headwater.cli.table_commands import table
from headwater.cli.task_commands import task
from headwater.console import Program, debug_option, output_option, session_option
from headwater.errors import HeadwaterError, RefusedError
from headwater.logs import log_to_stderr
from headwater.settings import Settings

ENTRY_POINTS = "headwater.commands"


class Application(Program):
    """The core's commands, and those of installed packages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *(point.name for point in entry_points(group=ENTRY_POINTS))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        points = list(entry_points(group=ENTRY_POINTS, name=cmd_name))
        return _load(points[0]) if points else None

    def make_session(self) -> CliSession:
        _log_to_stderr()
        return CliSession()

    def error_lines(self, error: HeadwaterError) -> list[str]:
        return lines_of(error)

    def tell(self, lines: Sequence[str], *, level: int, is_debug: bool) -> None:
        """Print each line to standard error; in a JSON log, the first line carries the traceback."""
        if is_debug and not is_log_json():
            sys.excepthook(*cast(Any, sys.exc_info()))
        for number, line in enumerate(lines):
            print_note(line, level=level, with_traceback=is_debug and number == 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            if is_log_json():
                raise click.Abort from interrupt  # click ends the line that shows ^C at a terminal: no line of a log
            raise


@click.group(name="headwater", cls=Application, context_settings={"help_option_names": ["-h", "--help"]})
@session_option(
    "--store",
    field="store_url",
    metavar="URL",
    help="The store; default is the setting HEADWATER_STORE, or sqlite:///headwater.db.",
)
@output_option
@debug_option
def main() -> None:
    """Store and maintain the catalogs of a data lakehouse in a database."""


for _command in (
    access,
    apply_command,
    catalog,
    client_config_command,
    file_table,
    files,
    fsck_command,
    gc,
    grant,
    import_tables_command,
    import_report_command,
    maintenance,
    policy,
    principal,
    realm,
    role,
    snapshots,
    store,
    table,
    task,
    version_command,
):
    main.add_command(_command)


def _log_to_stderr() -> None:
    """Send warnings of the packages below to standard error; standard output is for results. A worker configures its own logs later."""
    if is_log_json():
        log_to_stderr(Settings(log_format="json"), package="headwater")
        return
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def _load(point: EntryPoint) -> click.Command:
    try:
        return cast(click.Command, point.load())
    except ImportError as absent:
        return _absent(point, absent)


def _absent(point: EntryPoint, absent: ImportError) -> click.Command:
    """Return a stand-in for a command whose package is not installed: it is listed, and says how to install it.

    A package that is there and cannot be imported is a bug, raised by a call of the command: all others work.
    """
    extra = point.module.partition(".")[0].removeprefix("headwater_")
    advice = f"needs more than the core: pip install 'headwater[{extra}]'"

    def refuse(**_: Any) -> None:
        if not isinstance(absent, ModuleNotFoundError):
            raise absent
        raise RefusedError(f"the command {point.name!r} {advice} ({absent})") from absent

    arguments = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True}
    return click.Command(point.name, callback=refuse, params=[arguments], help=f"({advice})", context_settings=settings)
