"""A folder as broker, and what a broker is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kombu import Connection

from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater.store import ObjectId
from headwater_workers.celery_app import LOOK, Broker, LookMessages, broker_of, make_app

FILE = Settings(store="sqlite:///store.db")


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return broker_of(Settings(store=f"sqlite:///{tmp_path}/store.db"))


def take_all(broker: Broker) -> list[dict[str, object]]:
    """Every message in the folder, as one reader gets them."""
    app = make_app(FILE, broker)
    with Connection(app.conf.broker_url, transport_options=app.conf.broker_transport_options) as connection:
        queue = connection.SimpleQueue(broker.queue)
        taken = []
        while True:
            try:
                message = queue.get(block=False)
            except queue.Empty:
                return taken
            message.ack()
            taken.append({"task": message.headers["task"], "args": message.payload[0]})


def test_message_names_the_task_and_nothing_else(broker: Broker) -> None:
    LookMessages(make_app(FILE, broker)).send(ObjectId(0xABC), "token")

    assert take_all(broker) == [{"task": LOOK, "args": ["0000000000000abc", "token"]}]


def test_messages_come_in_their_order(broker: Broker) -> None:
    app = make_app(FILE, broker)
    for number in range(5):
        LookMessages(app).send(ObjectId(number))

    assert [int(message["args"][0], 16) for message in take_all(broker)] == [0, 1, 2, 3, 4]  # type: ignore[index]


def test_message_goes_to_one_of_many_readers(broker: Broker) -> None:
    app = make_app(FILE, broker)
    for number in range(40):
        LookMessages(app).send(ObjectId(number))
    with ThreadPoolExecutor(4) as pool:
        taken = [message for found in pool.map(lambda _: take_all(broker), range(4)) for message in found]

    assert len(taken) == 40


def test_folder_is_for_its_owner_alone(broker: Broker) -> None:
    make_app(FILE, broker)

    assert broker.folder is not None
    assert broker.folder.name == "store.db-broker"
    assert broker.folder.stat().st_mode & 0o777 == 0o700


def test_stores_that_share_a_redis_have_queues_of_their_own() -> None:
    redis = "redis://localhost/0"
    queues = {broker_of(Settings(store=f"sqlite:///{name}.db", broker=redis)).queue for name in ("a", "b")}

    assert len(queues) == 2


@pytest.mark.parametrize(
    "other",
    ["postgresql://a/other", "postgresql://b/lake", "postgresql://a:1,b:2/lake", "postgresql://a/lake?schema=other"],
)
def test_databases_that_share_a_redis_have_queues_of_their_own(other: str) -> None:
    redis = "redis://localhost/0"
    queues = {broker_of(Settings(store=url, broker=redis)).queue for url in ("postgresql://a/lake", other)}

    assert len(queues) == 2


def test_look_at_a_database_changes_nothing_about_its_queue() -> None:
    urls = ("postgresql://worker:secret@a/lake", "postgresql://operator@a/lake")
    queues = {broker_of(Settings(store=url, broker="redis://localhost/0")).queue for url in urls}

    assert len(queues) == 1


def test_broker_that_cannot_be_is_refused_without_its_password() -> None:
    with pytest.raises(RefusedError, match="amqp") as refused:
        broker_of(Settings(broker="amqp://user:geheim@localhost"))

    assert "geheim" not in str(refused.value)


def test_message_stays_hidden_for_longer_than_a_task_may_run() -> None:
    settings = Settings(broker="redis://localhost/0")
    configured = make_app(settings, broker_of(settings)).conf

    assert (
        configured.broker_transport_options["visibility_timeout"] > configured.task_time_limit > configured.task_soft_time_limit
    )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (Settings(store="memory://"), "lives in one process"),
        (Settings(broker="amqp://localhost"), "the URL of a Redis"),
        (Settings(store="postgresql://db/lake"), "--broker-folder"),
    ],
)
def test_broker_that_cannot_be_is_refused(settings: Settings, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        broker_of(settings)
