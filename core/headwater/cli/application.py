"""The root of the command tree: global options, commands of other packages, and failures as exit codes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.metadata import version as installed_version
from pkgutil import resolve_name
from typing import Any, cast

import click
import structlog

from headwater.cli.cli_session import CliSession, lines_of, print_note
from headwater.cli.help_texts import HELP_TEXTS, examples_text
from headwater.console import Program, debug_option, option_group, result_options, session_option
from headwater.errors import HeadwaterError, RefusedError
from headwater.interrupts import raise_at_interrupts
from headwater.logs import is_log_json, log_to_stderr
from headwater.settings import Settings
from headwater.terminal import end_line, erase_line

ENTRY_POINTS = "headwater.commands"
COMMANDS = {
    "access": "access_commands:access",
    "apply": "apply_command:apply_command",
    "catalog": "catalog_commands:catalog",
    "completion": "completion_command:completion_command",
    "context": "context_commands:context_group",
    "client-config": "client_config_command:client_config_command",
    "delete": "manifest_commands:delete_manifests_command",
    "diff": "manifest_commands:diff_manifests_command",
    "file-table": "file_table_commands:file_table",
    "files": "lake_file_commands:files",
    "fsck": "fsck_command:fsck_command",
    "gc": "gc_commands:gc",
    "grant": "grant_commands:grant",
    "import": "import_commands:import_tables_command",
    "import-report": "import_commands:import_report_command",
    "init": "init_command:init_command",
    "maintenance": "maintenance_commands:maintenance",
    "policy": "policy_commands:policy",
    "principal": "principal_commands:principal",
    "realm": "realm_commands:realm",
    "role": "role_commands:role",
    "runs": "run_commands:runs",
    "snapshots": "snapshot_commands:snapshots",
    "store": "store_commands:store",
    "table": "table_commands:table",
    "task": "task_run_command:task",
    "version": "store_commands:version_command",
}
"""Where the core's commands are. Each is imported when it is called, with what it needs: all of them take as long as the rest."""


class Application(Program):
    """The core's commands, and those of installed packages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        installed = (point.name for point in entry_points(group=ENTRY_POINTS))
        return sorted({*super().list_commands(ctx), *COMMANDS, *installed})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in COMMANDS:
            command = cast(click.Command, resolve_name(f"headwater.cli.{COMMANDS[cmd_name]}"))
        if command is None and (points := list(entry_points(group=ENTRY_POINTS, name=cmd_name))):
            command = _load(points[0])
        if command is not None:
            _complete(command, cmd_name)
        raise_at_interrupts()
        return command

    def make_session(self) -> CliSession:
        _log_to_stderr()
        return CliSession()

    def error_lines(self, error: HeadwaterError) -> list[str]:
        return lines_of(error)

    def tell(self, lines: Sequence[str], *, level: int, is_debug: bool) -> None:
        """Print each line to standard error; in a JSON log, the first line carries the traceback."""
        end_line()
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


global_options = (
    session_option(
        "--store",
        field="store_url",
        metavar="URL",
        help="The store; default is HEADWATER_STORE, or the context's, or sqlite:///headwater.db.",
    ),
    session_option(
        "--context", field="context_name", metavar="NAME", help="The context; default is HEADWATER_CONTEXT, or the one in use."
    ),
    result_options,
    debug_option,
)
"""Options that may stand anywhere: before the name of a command, between group and command, and after it."""


@click.group(name="headwater", cls=Application, context_settings={"help_option_names": ["-h", "--help"]})
@option_group(*global_options)
@click.version_option(installed_version("headwater"), message="%(prog)s %(version)s", help="Print the version and exit.")
def main() -> None:
    """Store and maintain the catalogs of a data lakehouse in a database."""


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
        logger_factory=lambda *_: _TerminalLogger(sys.stderr),
    )


class _TerminalLogger(structlog.PrintLogger):
    """Prints below a progress line, not into it."""

    def msg(self, message: str) -> None:
        erase_line()
        super().msg(message)

    log = debug = info = warn = warning = error = critical = exception = msg


def _complete(command: click.Command, path: str) -> None:
    """Give a command, and those below it, their texts of help and the options that may stand anywhere, which help shows at the root."""
    text = HELP_TEXTS.get(path)
    if text is not None:
        command.short_help, command.epilog = text.summary, examples_text(path)
    there = {name for parameter in command.params for name in parameter.opts}
    for option in _hidden_options():
        if not there & set(option.opts):
            command.params.append(option)
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _complete(inner, f"{path} {inner.name}")


def _hidden_options() -> list[click.Parameter]:
    function = option_group(*global_options)(lambda: None)
    options = click.command()(function).params
    for option in options:
        cast(click.Option, option).hidden = True
    return options


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
