"""Runs the tests in several processes, each of which collects only the files that it runs.

A process stays in its folder while that has files left, because the tests of a folder share servers and JVMs; then it begins the next
folder, and at the end it helps with folders that others began. A folder's line appears when its last file is done. At the end come all
failures in full, the reasons of skipped tests, and ``N passed, N failed, N skipped``.
Exit codes: 0 all passed, 1 not all passed, 2 no test ran, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from typing import Any

PROCESS = Path(__file__).with_name("test_process.py")
SLOW_FOLDERS = ("iceberg_spark", "pipeline", "files_spark", "engines", "workers", "store", "kube_stories", "operator", "gc")
"""These begin first, so that a run does not end with one process that works and others that have nothing to do."""

LOG_LINES = 40
SECONDS_TO_STOP = 60
"""What interrupted processes get to stop their servers."""


class Queue:
    """Hands out each file once."""

    def __init__(self, files: Iterable[Path], slow: Iterable[str] = SLOW_FOLDERS) -> None:
        self._waiting: dict[str, deque[Path]] = {}
        for file in sorted(files):
            self._waiting.setdefault(folder_of(file), deque()).append(file)
        order = {f"tests/{name}": at for at, name in enumerate(slow)}
        by_size = sorted(self._waiting, key=lambda folder: -len(self._waiting[folder]))
        self._unbegun = sorted(by_size, key=lambda folder: order.get(folder, len(order)))

    def next_file(self, after: Path | None = None) -> Path | None:
        """The next file for a process whose last one was ``after``. None: all files are handed out."""
        folder = folder_of(after) if after else None
        if folder is None or not self._waiting.get(folder):
            folder = (
                self._unbegun.pop(0)
                if self._unbegun
                else max(self._waiting, key=lambda name: len(self._waiting[name]), default="")
            )
        files = self._waiting.get(folder)
        return files.popleft() if files else None

    @property
    def waiting(self) -> list[Path]:
        return [file for files in self._waiting.values() for file in files]


def folder_of(file: Path) -> str:
    """``tests/store`` of each file in it and below."""
    return "/".join(file.parts[:2])


@dataclass
class Folder:
    """What is known about one folder so far."""

    files_left: int = 0
    cpu_seconds: float = 0.0
    outcomes: dict[str, str] = field(default_factory=dict)


class Results:
    """What is known about each test so far."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._failures: list[tuple[str, str]] = []
        self._skips: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()
        self._cpu_seconds: Counter[str] = Counter()
        self._folders: dict[str, Folder] = {}
        self.left_to_soaks = 0
        for file in files:
            self._folder(str(file)).files_left += 1

    def _folder(self, test: str) -> Folder:
        return self._folders.setdefault(folder_of(Path(test.partition("::")[0])), Folder())

    def pass_test(self, test: str) -> None:
        self._folder(test).outcomes.setdefault(test, "passed")

    def skip_test(self, test: str, reason: str) -> None:
        self._folder(test).outcomes[test] = "skipped"
        self._skips[reason] += 1

    def fail_test(self, test: str, phase: str, text: str) -> None:
        title = test if phase == "call" else f"{test} ({phase})"
        self._folder(test).outcomes[test] = "failed"
        self._failures.append((title, text))
        show(f"FAILED {title}")

    def add_seconds(self, test: str, seconds: float) -> None:
        self._seconds[test] += seconds

    def add_cpu_seconds(self, test: str, seconds: float) -> None:
        self._cpu_seconds[test] += seconds

    def finish_file(self, file: Path, cpu_seconds: float) -> None:
        folder = self._folder(str(file))
        folder.files_left -= 1
        folder.cpu_seconds += cpu_seconds
        if not folder.files_left:
            counts = Counter(folder.outcomes.values())
            show(f"{folder_of(file):28} {folder.cpu_seconds:6.1f} CPU-s   {closing_line(counts)}")

    @property
    def counts(self) -> Counter[str]:
        return Counter(outcome for folder in self._folders.values() for outcome in folder.outcomes.values())

    def summary(self, slowest: int) -> str:
        failures = [f"\n{f' {title} ':=^120}\n{text}" for title, text in self._failures]
        slow = [
            f"{seconds:7.1f} CPU-s {self._seconds[test]:7.1f} s  {test}"
            for test, seconds in self._cpu_seconds.most_common(slowest)
        ]
        skips = [f"skipped {count}: {reason}" for reason, count in sorted(self._skips.items())]
        left = [f"{self.left_to_soaks:,} more cases run with HEADWATER_SOAK=1"] if self.left_to_soaks else []
        failed = [f"FAILED {title}" for title, _ in self._failures]
        return "\n".join([*failures, "", *slow, *skips, *left, *failed])


def closing_line(counts: Mapping[str, int]) -> str:
    """In the form that continuous integration reads."""
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))


class Process:
    """A pytest session in a process of its own."""

    def __init__(self, number: int, folder: Path, options: Iterable[str], results: Results) -> None:
        self._results = results
        self._log = folder / f"process-{number}.log"
        self._file: Path | None = None
        self._test: str | None = None
        self._has_failures = False
        self.connection, theirs = Pipe()
        with self._log.open("wb") as log, theirs:
            self._child = subprocess.Popen(
                [sys.executable, PROCESS, str(theirs.fileno()), f"--basetemp={folder / f'process-{number}'}", *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "HEADWATER_TEST_PROCESS": str(number)},
            )

    def handle_event(self, queue: Queue) -> bool:
        """Handle one event, and hand out a file where it asks for one. Returns whether more events can come."""
        try:
            event, *values = self.connection.recv()
        except (EOFError, OSError):
            return False
        if event in {"ready", "finished"}:
            if self._file:
                self._results.finish_file(self._file, *values)
            self._file = queue.next_file(self._file)
            self.connection.send(self._file and str(self._file))
        else:
            self._note(event, *values)
        return True

    def _note(self, event: str, test: str, *values: Any) -> None:
        match event:
            case "began":
                self._test = test
            case "ended":
                self._test = None
                self._results.add_cpu_seconds(test, *values)
            case "passed":
                self._results.pass_test(test)
            case "skipped":
                self._results.skip_test(test, *values)
            case "left":
                self._results.left_to_soaks += values[0]
            case "lasted":
                self._results.add_seconds(test, *values)
            case "failed":
                self._has_failures = True
                self._results.fail_test(test, *values)

    def interrupt(self) -> None:
        """As Ctrl-C does: its servers are stopped."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)

    def wait(self, seconds: float | None = None) -> int:
        """The exit code; a process that takes longer is killed."""
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()

    def judge_exit(self) -> None:
        """Report what no test explains: a process that died, or a session that failed when it began or ended."""
        code = self.wait(SECONDS_TO_STOP)
        if not self._file and (code == 0 or (code == 1 and self._has_failures)):
            return
        way = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        log = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
        text = "\n".join([f"the process of this test {way}; the end of its output:", *log])
        self._results.fail_test(self._test or (str(self._file) if self._file else "tests"), way, text)


def run(options: argparse.Namespace, folder: Path) -> int:
    files = find_files(options.paths)
    queue, results = Queue(files), Results(files)
    pytest_options = ["-q", "-p", "no:cacheprovider", f"--randomly-seed={options.seed}", *options.pytest_options]
    if options.marks:
        pytest_options += ["-m", options.marks]
    processes = [Process(number, folder, pytest_options, results) for number in range(min(options.processes, len(files)))]
    interrupted = False
    try:
        follow(processes, queue)
    except KeyboardInterrupt:
        interrupted = True
        stop(processes)
    else:
        for process in processes:
            process.judge_exit()
        for file in queue.waiting:
            results.fail_test(str(file), "not run", "no process was left to run it")
    counts = results.counts
    show(results.summary(options.slowest))
    show(f"seed {options.seed}{', interrupted' if interrupted else ''}")
    show(closing_line(counts))
    return 130 if interrupted else 1 if counts["failed"] else 0 if counts.total() else 2


def find_files(paths: Iterable[str]) -> list[Path]:
    """The test files that are named or in a named folder, relative to the current folder."""
    found = [file for path in map(Path, paths) for file in ([path] if path.is_file() else path.rglob("test_*.py"))]
    return list(dict.fromkeys(file.absolute().relative_to(Path.cwd()) for file in found))


def follow(processes: Iterable[Process], queue: Queue, seconds: float | None = None) -> None:
    """Until each process has run its last file, or died, or nothing has happened for so long."""
    following: dict[Any, Process] = {process.connection: process for process in processes}
    while following and (ready := wait(following, seconds)):
        for connection in ready:
            if not following[connection].handle_event(queue):
                del following[connection]


def stop(processes: Iterable[Process]) -> None:
    """End all processes, and read what they still report."""
    for process in processes:
        process.interrupt()
    follow(processes, Queue([]), SECONDS_TO_STOP)
    for process in processes:
        process.wait(SECONDS_TO_STOP)


def show(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the output of a program


def interrupt_on_terminate(*_: object) -> None:
    raise KeyboardInterrupt


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", metavar="PATH", nargs="*", default=["tests"], help="folders and files; all tests without any")
    parser.add_argument("-m", dest="marks", metavar="MARKS", default="", help="as pytest's -m")
    parser.add_argument("--processes", type=int, metavar="N", default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--slowest", type=int, metavar="N", default=0, help="show the N tests that take most CPU")
    parser.add_argument("--seed", type=int, metavar="N", default=random.getrandbits(32), help="of a run to repeat")
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    options.pytest_options = arguments[at + 1 :]
    return options


def main() -> int:
    options = read_arguments()
    signal.signal(signal.SIGTERM, interrupt_on_terminate)
    folder = Path(tempfile.mkdtemp(prefix="headwater-tests-"))
    try:
        return run(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
