"""Whether a process of this machine is gone: only what is certain counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headwater.store.id_generator import has_process_ended, owner_text

NOW = 1_700_000_000_000


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """A process of this machine that says its owner text, and stays."""
    code = f"from headwater.store.id_generator import owner_text; import sys; print(owner_text({NOW}), flush=True); sys.stdin.read()"
    started = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield started
    started.kill()
    started.communicate()


@pytest.fixture
def owner(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def now_of(owner: str) -> int:
    """What the clock says now that said NOW when the text was written."""
    offset = int(owner.split(":")[5].partition(".")[0])
    mine = int(owner_text(NOW).split(":")[5].partition(".")[0])
    return NOW + offset - mine


def test_process_that_lives_is_not_gone(owner: str) -> None:
    assert not has_process_ended(owner, now_of(owner))
    assert not has_process_ended(owner_text(NOW), NOW)


def test_process_that_was_killed_is_gone(child: subprocess.Popen[str], owner: str) -> None:
    child.kill()
    child.wait()

    assert has_process_ended(owner, now_of(owner))


def test_one_that_nobody_has_waited_for_is_gone(child: subprocess.Popen[str], owner: str) -> None:
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert has_process_ended(owner, now_of(owner))


def test_one_whose_number_another_has_by_now_is_gone(owner: str) -> None:
    parts = owner.split(":")
    parts[4] = "1"

    assert has_process_ended(":".join(parts), now_of(owner))


@pytest.mark.long
@pytest.mark.parametrize("place", [2, 3])
def test_processes_of_other_machines_and_containers_are_unknown(child: subprocess.Popen[str], owner: str, place: int) -> None:
    child.kill()
    child.wait()
    parts = owner.split(":")
    parts[place] = "other"

    assert not has_process_ended(":".join(parts), now_of(owner))


@pytest.mark.long
@pytest.mark.parametrize("seconds", [-3600, -2, 2, 3600])
def test_processes_are_unknown_where_the_clock_was_set_since(child: subprocess.Popen[str], owner: str, seconds: int) -> None:
    child.kill()
    child.wait()

    assert not has_process_ended(owner, now_of(owner) + seconds * 1000)


@pytest.mark.parametrize("text", ["", "other", "host:77:0123456789abcdef", "a:b:c:d:e:f", "host:0:::0:0.x", ":::::"])
def test_words_of_other_releases_tell_nothing(text: str) -> None:
    assert not has_process_ended(text, NOW)


def test_two_texts_of_one_process_differ() -> None:
    assert owner_text(NOW) != owner_text(NOW)
