"""One process of ``run_tests.py``: a pytest session that collects and runs the files that the runner hands out, one after another.

Session fixtures (servers, JVMs) live as long as the process; all others end with their file. Only the runner starts it:

    test_process.py DESCRIPTOR [PYTEST OPTION]...

DESCRIPTOR  of a connection: the path of the next file comes in, None at the end; tuples that begin with the name of an event go out
"""

from __future__ import annotations

import gc
import itertools
import os
import resource
import signal
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import pytest


class HandedOutFiles:
    """A plugin of pytest that runs what the runner hands out, and reports each step."""

    def __init__(self, runner: Connection) -> None:
        self._runner = runner

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        """Collect nothing yet: each file is collected when its turn comes, and by no other process."""
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        end = End.from_parent(session, name="end")
        tree = Tree(session)
        self._runner.send(("ready",))
        while (file := self._runner.recv()) is not None:
            before = used_seconds()
            self._run_items(tree.collect_items(Path(file)), end)
            self._runner.send(("finished", used_seconds() - before))
        session.testscollected = 1  # none would be exit code 5
        return True

    def _run_items(self, items: list[pytest.Item], end: pytest.Item) -> None:
        for item, following in itertools.pairwise([*items, end]):
            self._runner.send(("began", item.nodeid))
            before = used_seconds()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._runner.send(("ended", item.nodeid, used_seconds() - before))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._runner.send(("failed", report.nodeid, "collection", report.longreprtext))
        elif report.skipped:
            self._runner.send(("skipped", report.nodeid, skip_reason(report)))

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for_soaks = sum(item.get_closest_marker("soak") is not None for item in items)
        if for_soaks:
            self._runner.send(("left", items[0].nodeid, for_soaks))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            captured = [f"{f' {title} ':-^120}\n{text}" for title, text in report.sections]
            self._runner.send(("failed", report.nodeid, report.when, "\n".join([report.longreprtext, *captured])))
        elif report.skipped:
            self._runner.send(("skipped", report.nodeid, skip_reason(report)))
        elif report.when == "call":
            self._runner.send(("passed", report.nodeid))
        self._runner.send(("lasted", report.nodeid, report.duration))


class End(pytest.Item):
    """Stands behind the last test of a file, so that the fixtures end there, but for those of the session."""

    def runtest(self) -> None:
        raise AssertionError("the end of a file is not a test")


class Tree:
    """The folders that were collected so far. A fixture of a conftest belongs to the node of its folder, so each has one node."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._root = pytest.Dir.from_parent(session, path=session.config.rootpath)
        self._children: dict[pytest.Collector, dict[str, pytest.Collector]] = {}

    def collect_items(self, file: Path) -> list[pytest.Item]:
        """The tests of a file that the options select. Python's garbage collector would walk all earlier tests again and again."""
        gc.disable()
        try:
            module = self._find_module(file)
            self._session.items = [] if module is None else list(self._session.genitems(module))
            self._session.config.hook.pytest_collection_modifyitems(
                session=self._session, config=self._session.config, items=self._session.items
            )
            return self._session.items
        finally:
            gc.freeze()
            gc.enable()

    def _find_module(self, file: Path) -> pytest.Collector | None:
        """None: a conftest ignores it."""
        node: pytest.Collector | None = self._root
        for name in file.parts:
            node = self._collect_children(node).get(name) if node else None
        return node

    def _collect_children(self, node: pytest.Collector) -> dict[str, pytest.Collector]:
        if node not in self._children:
            report = node.ihook.pytest_make_collect_report(collector=node)
            node.ihook.pytest_collectreport(report=report)
            self._children[node] = {child.path.name: child for child in report.result}
        return self._children[node]


def skip_reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(getattr(report, "wasxfail", report.longreprtext))


def used_seconds() -> float:
    """CPU seconds of this process and of those children of it that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with it ignored
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)  # else programs that tests start, and leave behind, keep the connection open
    with Connection(descriptor) as runner:
        return int(pytest.main(sys.argv[2:], plugins=[HandedOutFiles(runner)]))


if __name__ == "__main__":
    sys.exit(main())
