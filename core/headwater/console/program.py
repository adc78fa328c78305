"""The root of a command tree: any exception that a command raises ends the process with the documented exit code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import click

from headwater.errors import HeadwaterError
from headwater.exits import exit_code
from headwater.extras import missing_extra

_INTERRUPTED = 130
_BUG = 1


class Program(click.Group):
    """A click group that ends with the documented exit codes. A command returns its code.

    program           the name on the command line, printed before each line on standard error
    debug_advice      how to see the traceback of a bug; empty where it is always shown
    """

    program = "headwater"
    debug_advice = "; run again with --debug for the traceback"

    def begin(self) -> Any:
        """Runs before any command. Returns ``ctx.obj`` for the commands; its ``debug`` says whether tracebacks are shown."""
        return None

    def error_lines(self, error: HeadwaterError) -> Sequence[str]:
        return [str(error)]

    def tell(self, lines: Sequence[str], *, level: int, is_debug: bool) -> None:
        """Report the current exception on standard error in one line; with ``is_debug`` also its traceback."""
        if is_debug:
            sys.excepthook(*cast(Any, sys.exc_info()))
        click.echo(f"{self.program}: {' '.join(' '.join(lines).split())}", err=True)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # the reader of the output is gone, as with `head`; discard the rest
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **options: Any) -> NoReturn:  # type: ignore[override]
        """Run one command line and exit with its code."""
        session = self.begin()
        options |= {"standalone_mode": False, "obj": session}
        try:
            result = super().main(args, prog_name or self.program, **options)
            code = result if isinstance(result, int) else 0
        except click.exceptions.NoArgsIsHelpError as missing:
            missing.show()
            code = missing.exit_code
        except click.ClickException as wrong:
            code = self._end_usage(wrong)
        except (click.Abort, KeyboardInterrupt):
            code = self._end(["interrupted"], _INTERRUPTED, level=logging.WARNING)
        except HeadwaterError as error:
            code = self._end(self.error_lines(error), exit_code(error), session)
        except ModuleNotFoundError as absent:
            refused = missing_extra(absent)
            code = self._end([str(refused)], exit_code(refused), session) if refused else self._end_bug(absent, session)
        except Exception as bug:  # noqa: BLE001 - the door: whatever comes out here is a bug, and is told as one
            code = self._end_bug(bug, session)
        sys.exit(code)

    def _end_usage(self, wrong: click.ClickException) -> int:
        ctx = wrong.ctx if isinstance(wrong, click.UsageError) else None
        where = f"; see `{ctx.command_path} --help`" if ctx else ""
        code = wrong.exit_code if isinstance(wrong, click.UsageError) else 2
        return self._end([f"{wrong.format_message().rstrip('.')}{where}"], code)

    def _end_bug(self, bug: Exception, session: Any) -> int:
        lines = [f"a bug: {type(bug).__name__}: {bug}{self.debug_advice}"]
        return self._end(lines, _BUG, session, is_debug=not self.debug_advice)

    def _end(
        self, lines: Sequence[str], code: int, session: Any = None, *, level: int = logging.ERROR, is_debug: bool = False
    ) -> int:
        self.tell(lines, level=level, is_debug=is_debug or bool(getattr(session, "debug", False)))
        return code
