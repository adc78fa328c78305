"""A fresh environment for one page, with a shell that goes on from block to block, further terminals, and a Python session."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from page_blocks import Block, matches

__all__ = ["PageTerminals", "page_terminals"]

LIMIT_SECONDS = 120.0
COMMAND = re.compile(r"((?:[^\n]*\\\n)*[^\n]*\n?)(.*)", re.DOTALL)


@dataclass
class PageTerminals:
    """Runs blocks as the reader of a page does. What goes wrong is an AssertionError that names the line, and shows what was printed."""

    folder: Path
    environment: Mapping[str, str]
    page: str
    others: list[subprocess.Popen[str]] = field(default_factory=list)
    python: subprocess.Popen[str] | None = None
    shell: subprocess.Popen[str] | None = None
    script: int = -1

    def run(self, block: Block, follower: Block | None) -> None:
        """Run one block; the one after it may say what is printed."""
        if block.file:
            file = self.folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.terminal:
            self._run_aside(block)
        elif block.language == "bash":
            self._check(block, 0, *self._run_shell(block.text, is_strict=True))
        elif block.language == "console":
            self._run_console(block)
        elif block.language == "python":
            code, printed = self._run_python(block.text)
            self._check(block, 0, code, printed)
            if follower is not None and follower.language == "text":
                self._compare(follower, follower.text, printed)

    def _run_console(self, block: Block) -> None:
        steps = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
        for number, step in enumerate(steps, start=1):
            command, expected = COMMAND.fullmatch(step).groups()  # type: ignore[union-attr]
            code, printed = self._run_shell(command)
            self._check(block, block.exit_code if number == len(steps) else 0, code, printed)
            if expected.strip():
                self._compare(block, expected, printed)

    def _run_shell(self, text: str, *, is_strict: bool = False) -> tuple[int, str]:
        """The exit code and the output of commands, in the shell that all blocks share; a strict one ends at the first that fails."""
        if self.shell is None:
            script, self.script = os.pipe()
            self.shell = self._start(["bash", "--norc", "--noprofile", f"/dev/fd/{script}"], keep=script)
            os.close(script)
        mark = f"mark-{uuid.uuid4().hex}"
        quoted = text.replace("'", "'\\''")
        before, after = ("set -e; ", "; set +e") if is_strict else ("", "")
        os.write(self.script, f"{before}eval '{quoted}'; printf '\\n{mark} %s\\n' $?{after}\n".encode())
        return self._read_to(self.shell, mark)

    def _run_python(self, text: str) -> tuple[int, str]:
        if self.python is None:
            self.python = self._start(["headwater-session"], stdin=subprocess.PIPE)
        mark = f"mark-{uuid.uuid4().hex}"
        assert self.python.stdin is not None
        self.python.stdin.write(f"{base64.b64encode(text.encode()).decode()} {mark}\n")
        self.python.stdin.flush()
        return self._read_to(self.python, mark)

    def _run_aside(self, block: Block) -> None:
        """Start what goes on, and wait until it has printed what the page shows."""
        command, _, shown = block.text.removeprefix("$ ").partition("\n")
        expected = f"…\n{shown.strip()}\n…"
        log = self.folder.parent / f"{block.terminal}.log"
        with log.open("w", encoding="utf-8") as output:
            self.others.append(self._start(["bash", "-c", command], output=output.fileno()))
        until = time.monotonic() + LIMIT_SECONDS
        while not matches(expected, log.read_text(encoding="utf-8")):
            assert self.others[-1].poll() is None, f"{self.page}:{block.line}: it ended\n{log.read_text(encoding='utf-8')}"
            assert time.monotonic() < until, (
                f"{self.page}:{block.line}: it does not show that\n{log.read_text(encoding='utf-8')}"
            )
            time.sleep(0.05)

    def _start(
        self, command: list[str], *, keep: int = -1, output: int = subprocess.PIPE, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=dict(self.environment),
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=[keep] if keep >= 0 else [],
            start_new_session=True,
        )

    def _read_to(self, process: subprocess.Popen[str], mark: str) -> tuple[int, str]:
        assert process.stdout is not None
        printed: list[str] = []
        for line in process.stdout:
            if line.startswith(mark):
                return int(line.split()[1]), "".join(printed)
            printed.append(line)
        return process.wait(), "".join(printed)

    def _check(self, block: Block, wanted: int, code: int, printed: str) -> None:
        assert code == wanted, f"{self.page}:{block.line}: exit code {code} instead of {wanted}\n{block.text}\n{printed}"

    def _compare(self, block: Block, expected: str, printed: str) -> None:
        assert matches(expected, printed), f"{self.page}:{block.line}: shown\n{expected}\nprinted\n{printed}"

    def close(self) -> None:
        """End everything that the page started."""
        if self.script >= 0:
            os.close(self.script)
        if self.python is not None and self.python.stdin is not None:
            self.python.stdin.close()
        for process in [*self.others, *filter(None, (self.shell, self.python))]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=20)
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def page_terminals(folder: Path, environment: Mapping[str, str], page: str) -> Iterator[PageTerminals]:
    terminals = PageTerminals(folder, environment, page)
    try:
        yield terminals
    finally:
        terminals.close()
