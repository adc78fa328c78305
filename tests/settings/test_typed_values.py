"""Types of msgspec: no thread uses one that another is just building."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from headwater import typed_values

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / root for root in ("core", "operator", "server", "workers")]
_USE = re.compile(
    r"msgspec\.convert\(|\b(json|msgpack)\.Decoder\(|\b(json|msgpack)\.decode\((?:[^()]|\([^()]*\))*\btype="
    r"|^from msgspec\S* import .*\b(convert|json|msgpack|Decoder|decode)\b",
    re.MULTILINE,
)
PROCESSES = 10
FOUR_FIRST_USERS = """
import sys, threading
from headwater.iceberg.spec import check_table

sys.setswitchinterval(1e-6)
document = {
    "format-version": 2, "table-uuid": "8a2c2f5e-5b8e-4b1c-9a3b-0a0a0a0a0a0a", "location": "file:///lake/events",
    "last-sequence-number": 0, "last-updated-ms": 1700000000000, "last-column-id": 1, "current-schema-id": 0,
    "schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "type": "int", "required": False}]}],
    "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
    "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "snapshots": [], "refs": {}, "properties": {},
}
barrier, checked = threading.Barrier(4), []

def check():
    barrier.wait()
    checked.append(check_table(document))

threads = [threading.Thread(target=check) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(checked) == 4
"""


class Inner(msgspec.Struct):
    number: int


class Outer(msgspec.Struct):
    inner: Inner


def test_every_use_of_a_type_builds_it_first() -> None:
    """``msgspec.convert``, a decoder and ``decode(type=…)`` anywhere else could meet a type that another thread is building."""
    files = [file for root in SOURCES for file in root.rglob("*.py") if file.name != "typed_values.py"]
    found = {str(file.relative_to(ROOT)): uses for file in files if (uses := _typed_uses(file.read_text()))}
    assert found == {}, "use headwater.typed_values there"


@pytest.mark.parametrize(
    "text",
    [
        "msgspec.convert({}, X)",
        "msgspec.json.Decoder(X)",
        "msgspec.msgpack.decode(\n    pack(1),\n    type=X)",
        "from msgspec import inspect, json",
    ],
)
def test_other_uses_are_recognized(text: str) -> None:
    assert len(_typed_uses(text)) == 1


def test_a_type_waits_for_one_that_is_being_built() -> None:
    user = threading.Thread(target=typed_values.convert, args=({"inner": {"number": 1}}, Outer))
    with typed_values._building:
        user.start()
        user.join(0.05)
        assert user.is_alive(), "it uses what the holder of the lock may just be building"
    user.join()
    assert Outer in typed_values._built


def test_child_that_is_forked_may_build_types() -> None:
    child = os.fork()
    if not child:
        builder = threading.Thread(target=typed_values.build_type, args=(list[Inner],), daemon=True)
        builder.start()
        builder.join(10)
        os._exit(1 if builder.is_alive() else 0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.long
def test_threads_of_a_fresh_process_check_their_first_tables_at_once() -> None:
    """Without the lock, two of three of these processes die of SIGSEGV."""
    codes = [subprocess.run([sys.executable, "-c", FOUR_FIRST_USERS], check=False).returncode for _ in range(PROCESSES)]
    assert codes == [0] * PROCESSES


def _typed_uses(text: str) -> list[str]:
    return [use[0] for use in _USE.finditer(text)] if "msgspec" in text else []
