"""Threads of a fresh process that read the first object of a type at the same moment: the process lives on."""

from __future__ import annotations

import sys
import threading

import msgspec
import pytest

from forked_children import run_forked
from headwater.store import ObjectId, StoredObject, object_type, stored_objects

pytestmark = pytest.mark.long

ROUNDS, THREADS = 100, 4


def test_threads_may_read_a_types_first_object_at_once() -> None:
    """msgspec 0.22 ends the process when it decodes a class of which another thread is making the first decoder."""
    assert run_forked(1, lambda _: read_first_objects()) == [ROUNDS * THREADS]


def read_first_objects() -> int:
    sys.setswitchinterval(1e-6)
    return sum(read_at_once(make_type(number)) for number in range(ROUNDS))


def make_type(number: int) -> type[StoredObject]:
    """A type that nothing has read yet, with values inside that are of such a type too."""
    inner = msgspec.defstruct(f"Inner{number}", [(name, dict[str, int]) for name in "abcdefgh"])
    space = {"__annotations__": {"first": inner, "others": tuple[inner, ...]}, "__module__": __name__}  # type: ignore[valid-type]
    made = type(StoredObject)(f"Outer{number}", (StoredObject,), space, frozen=True, kw_only=True)
    return object_type(f"first-read-{number}")(made)


def read_at_once(cls: type[StoredObject]) -> int:
    [inner] = [field.type for field in msgspec.structs.fields(cls) if field.name == "first"]
    name, envelope = stored_objects.encode_object(ObjectId(1), cls(first=inner(*[{}] * 8), others=()))
    barrier, read = threading.Barrier(THREADS), list[StoredObject]()

    def work() -> None:
        barrier.wait()
        read.append(stored_objects.decode_object(ObjectId(1), name, envelope, cls, realm="acme"))

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(read)
