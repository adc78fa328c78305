"""Two servers on one database: a request that both are sent, or that one dies of, is applied once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from replicas import (
    SCHEMA,
    Replica,
    ReplicaAnswer,
    append_body,
    fsck_faults,
    identified,
    new_key,
    opened_lake,
    prepare_lake,
    started_replicas,
)

TABLES = "namespaces/sales/tables"
ROUNDS = 3
Request = tuple[str, str, Any]


@dataclass
class Rivals:
    """Two replicas, and requests that were not sent yet."""

    url: str
    warehouse: Path
    replicas: Sequence[Replica]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def orders(self) -> Any:
        return self.replicas[1].send("GET", f"{TABLES}/orders").data["metadata"]

    def append(self) -> Request:
        return "POST", f"{TABLES}/orders", append_body(self.orders(), next(self.numbers))

    def creation(self) -> Request:
        return "POST", TABLES, {"name": f"new-{next(self.numbers)}", "schema": SCHEMA}

    def placed_creation(self) -> Request:
        number = next(self.numbers)
        place = f"{self.warehouse.as_uri()}/placed-{number}"
        return "POST", TABLES, {"name": f"placed-{number}", "schema": SCHEMA, "location": place}

    def rename(self) -> Request:
        name = f"moving-{next(self.numbers)}"
        assert self.replicas[1].send("POST", TABLES, {"name": name, "schema": SCHEMA}).is_done
        return "POST", "tables/rename", {"source": identified(name), "destination": identified(f"{name}-there")}

    def drop(self) -> Request:
        name = f"going-{next(self.numbers)}"
        assert self.replicas[1].send("POST", TABLES, {"name": name, "schema": SCHEMA}).is_done
        return "DELETE", f"{TABLES}/{name}", None

    def properties(self) -> Request:
        return "POST", "namespaces/sales/properties", {"removals": ["a"], "updates": {"b": str(next(self.numbers))}}

    def transaction(self) -> Request:
        change = {"identifier": identified("orders"), **self.append()[2]}
        return "POST", "transactions/commit", {"table-changes": [change]}

    def commits(self) -> int:
        with opened_lake(self.url) as lake:
            return sum(1 for _ in lake.log())

    def files(self) -> set[Path]:
        return set(self.warehouse.rglob("*.metadata.json"))

    def live_files(self) -> set[Path]:
        with opened_lake(self.url) as lake:
            keys = [entry.key for entry in lake.entries(None).entries]
            contents = lake.get_contents(None, keys).values()
            named = [location for content in contents if (location := getattr(content, "metadata_location", None))]
        return {Path(unquote(urlparse(location).path)) for location in named}


REQUESTS: dict[str, Callable[[Rivals], Request]] = {
    "append": Rivals.append,
    "creation": Rivals.creation,
    "placed creation": Rivals.placed_creation,
    "rename": Rivals.rename,
    "drop": Rivals.drop,
    "properties": Rivals.properties,
    "transaction": Rivals.transaction,
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def rivals(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rivals]:
    folder = tmp_path_factory.mktemp("rivals")
    is_server = request.param == "postgresql"
    url = request.getfixturevalue("postgresql_server").url(folder.name) if is_server else f"sqlite:///{folder}/store.db"
    warehouse = folder / "warehouse"
    prepare_lake(url, warehouse.as_uri())
    with started_replicas(url) as replicas:
        assert replicas[0].send("POST", TABLES, {"name": "orders", "schema": SCHEMA}).is_done
        yield Rivals(url, warehouse, replicas)
    assert fsck_faults(url) == []


def at_once(replicas: Sequence[Replica], request: Request, key: str | None) -> list[ReplicaAnswer]:
    with ThreadPoolExecutor(len(replicas)) as pool:
        return list(pool.map(lambda replica: replica.send(*request, key=key), replicas))


@pytest.mark.parametrize("name", REQUESTS)
def test_request_to_both_replicas_is_applied_once(rivals: Rivals, name: str) -> None:
    for _ in range(ROUNDS):
        key, request = new_key(), REQUESTS[name](rivals)
        before = rivals.commits()
        answers = at_once(rivals.replicas, request, key)
        assert {answer.status for answer in answers} <= {200, 204, 409, 503}, answers
        settled = at_once(rivals.replicas, request, key)

        assert all(answer.is_done for answer in settled), settled
        assert len({answer.content for answer in settled}) == 1
        assert rivals.commits() == before + 1


def test_key_of_another_body_is_refused_by_the_other(rivals: Rivals) -> None:
    first, second = rivals.replicas
    key, (method, path, body) = new_key(), rivals.append()
    assert first.send(method, path, body, key=key).is_done

    assert second.send(*rivals.append(), key=key).status == 422
    assert second.send(method, path, body, key="5f0f4bb1-2b3a-4f5e-9d3c-7a1f0c9e8b7d").status == 400


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize(
    ("name", "is_keyed"), [("append", True), ("transaction", False), ("creation", False), ("placed creation", True)]
)
def test_request_that_a_replica_died_of_is_repeated(rivals: Rivals, name: str, is_before: bool, is_keyed: bool) -> None:
    """It dies at the swap of the branch; the claim of a new table is another swap before that."""
    dying, other = rivals.replicas
    key, request, before, files = new_key() if is_keyed else None, REQUESTS[name](rivals), rivals.commits(), rivals.files()
    dying.die("write_and_swap", at=2 if "creation" in name else 1, before=is_before)
    lost = dying.send(*request, key=key)
    dying.process.wait()
    is_made = rivals.commits() > before
    dying.kill()
    dying.start()
    repeated = other.send(*request, key=key)
    dying.wait()

    assert (lost.status, is_made) == (0, not is_before)
    assert len(rivals.files() - files) == (1 if is_made else 2)  # one that no commit took up stays
    assert rivals.live_files() <= rivals.files()
    if is_keyed or name in ("append", "transaction"):
        assert repeated.is_done, repeated
        assert rivals.commits() == before + 1
    elif is_made:
        assert repeated.status == 409
    else:
        assert repeated.is_done
