"""Messages are sent for tasks that could be claimed, and sent again when they got lost."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.files import FileTableColumn, FileTables, RowKeyType
from headwater.jobs import COLLECT_FILES
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import ObjectId, Store, open_store
from headwater.tasks import LeaseExpiry, TaskQueue, TaskState
from headwater_workers.dispatcher import FILE_TABLES_SECONDS, WAITING_A_CHILD, Dispatcher, DispatcherThread
from lakes import make_realm

Sent = list[tuple[ObjectId, str | None]]


class Mailbox:
    """A broker: all messages that were sent, and how many of them nobody has taken."""

    def __init__(self) -> None:
        self.sent: Sent = []
        self.waiting = 0

    def send(self, task_id: ObjectId, token: str | None) -> None:
        self.sent.append((task_id, token))
        self.waiting += 1

    def count_waiting(self) -> int:
        return self.waiting

    def take(self) -> ObjectId:
        """The task of the message that has waited longest."""
        self.waiting -= 1
        return self.sent[-1 - self.waiting][0]


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def sent(mailbox: Mailbox) -> Sent:
    return mailbox.sent


@pytest.fixture
def make_dispatcher(store: Store, mailbox: Mailbox) -> Callable[[], Dispatcher]:
    return lambda: Dispatcher(store, mailbox, children=5, kinds={"gc"})


@pytest.fixture
def dispatcher(make_dispatcher: Callable[[], Dispatcher]) -> Dispatcher:
    return make_dispatcher()


def test_due_task_is_sent(dispatcher: Dispatcher, waiting: ObjectId, sent: Sent) -> None:
    dispatcher.step()

    assert sent == [(waiting, None)]


def test_new_file_table_gets_its_collection(store: Store, tasks: TaskQueue, clock: FakeClock) -> None:
    dispatcher = Dispatcher(store, Mailbox(), children=1, kinds={COLLECT_FILES})
    dispatcher.step()
    rows = RealmRegistry(store).open_realm(make_realm(store).id)
    FileTables(rows, lambda scope: None).create_table(
        "orders",
        location="s3://lake/tables",
        key_column="id",
        key_type=RowKeyType.LONG,
        columns=(FileTableColumn(name="id", type="long"),),
    )
    dispatcher.step()
    assert not tasks.list_tasks(kind=COLLECT_FILES)
    clock.advance(FILE_TABLES_SECONDS)
    dispatcher.step()

    assert [task.value.subject for task in tasks.list_tasks(kind=COLLECT_FILES)] == ["orders"]


def test_task_of_the_future_is_not_sent(dispatcher: Dispatcher, tasks: TaskQueue, clock: FakeClock, sent: Sent) -> None:
    tasks.submit_task("gc", realm="acme", due=clock.now() + 1)
    dispatcher.step()

    assert sent == []


def test_task_of_an_unknown_kind_is_left_to_others(dispatcher: Dispatcher, tasks: TaskQueue, sent: Sent) -> None:
    tasks.submit_task("brew", realm="acme")
    dispatcher.step()

    assert sent == []


def test_lost_message_is_sent_again_less_and_less_often(
    dispatcher: Dispatcher, waiting: ObjectId, clock: FakeClock, sent: Sent
) -> None:
    times = []
    for second in range(240):
        before = len(sent)
        dispatcher.step()
        if len(sent) > before:
            times.append(second)
        clock.advance(1)

    assert times == [0, 5, 15, 35, 75, 135, 195]


def test_claimed_task_is_not_sent(dispatcher: Dispatcher, tasks: TaskQueue, waiting: ObjectId, sent: Sent) -> None:
    tasks.claim_task(waiting, "worker-1")
    dispatcher.step()

    assert sent == []


def test_task_that_failed_is_sent_at_once_when_due(
    dispatcher: Dispatcher, tasks: TaskQueue, waiting: ObjectId, clock: FakeClock, sent: Sent
) -> None:
    dispatcher.step()
    claim = tasks.claim_task(waiting, "worker-1")
    assert claim is not None
    claim.fail_task("no luck")
    dispatcher.step()
    clock.advance(10)
    dispatcher.step()

    assert sent == [(waiting, None)] * 2


def test_silent_task_is_sent_with_the_token_that_stood_still(
    dispatcher: Dispatcher, tasks: TaskQueue, waiting: ObjectId, clock: FakeClock, sent: Sent
) -> None:
    tasks.claim_task(waiting, "worker-1")
    dispatcher.step()
    clock.advance(60)
    dispatcher.step()

    ((_, token),) = sent
    assert tasks.claim_task(waiting, "worker-2", LeaseExpiry(token)) is not None


def test_many_dispatchers_do_no_harm(
    make_dispatcher: Callable[[], Dispatcher], tasks: TaskQueue, waiting: ObjectId, sent: Sent
) -> None:
    for _ in range(5):
        make_dispatcher().step()
    claims = [tasks.claim_task(task_id, "worker-1", LeaseExpiry(token)) for task_id, token in sent]

    assert len(claims) == 5
    assert sum(claim is not None for claim in claims) == 1


def test_more_tasks_wait_than_messages(make_dispatcher: Callable[[], Dispatcher], tasks: TaskQueue, mailbox: Mailbox) -> None:
    for number in range(30):
        tasks.submit_task("gc", realm=f"realm-{number}")
    two = (make_dispatcher(), make_dispatcher())
    most = 0
    for _ in range(3):
        for dispatcher in two:
            dispatcher.step()
            most = max(most, mailbox.waiting)

    assert most == WAITING_A_CHILD * 5


def test_room_in_the_broker_is_filled_again_between_looks(dispatcher: Dispatcher, tasks: TaskQueue, mailbox: Mailbox) -> None:
    submitted = [tasks.submit_task("gc", realm=f"realm-{number}").id for number in range(14)]
    assert dispatcher.step()
    for _ in range(3):
        tasks.claim_task(mailbox.take(), "worker-1")
    assert dispatcher.refill(), "one more waits for room"

    assert [task_id for task_id, _ in mailbox.sent] == submitted[:13]


def test_tasks_that_others_claimed_get_no_message(dispatcher: Dispatcher, tasks: TaskQueue, mailbox: Mailbox) -> None:
    submitted = [tasks.submit_task("gc", realm=f"realm-{number}").id for number in range(12)]
    dispatcher.step()
    for task_id in submitted[:11]:
        tasks.claim_task(task_id, "another's worker")
    mailbox.waiting = 0
    assert not dispatcher.refill()

    assert [task_id for task_id, _ in mailbox.sent[10:]] == submitted[11:]


def test_task_behind_many_that_are_left_alone_is_found(
    make_dispatcher: Callable[[], Dispatcher], tasks: TaskQueue, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater_workers.dispatcher.DUE_AT_ONCE", 4)
    for number in range(9):
        tasks.submit_task("brew", realm=f"realm-{number}")
    known = tasks.submit_task("gc", realm="acme").id
    dispatcher = make_dispatcher()
    found = [dispatcher.step() or len(mailbox.sent) for _ in range(3)]

    assert (found, mailbox.sent) == ([0, 0, 1], [(known, None)])


def test_old_tasks_are_forgotten_by_the_way(
    dispatcher: Dispatcher, tasks: TaskQueue, waiting: ObjectId, clock: FakeClock
) -> None:
    tasks.cancel_task(waiting)
    assert tasks.list_tasks(state=TaskState.CANCELLED)
    clock.advance(91 * 86_400)
    dispatcher.step()

    assert tasks.list_tasks(state=TaskState.CANCELLED) == []


def test_one_collection_of_the_system_realm_waits_for_its_week(
    make_dispatcher: Callable[[], Dispatcher], tasks: TaskQueue, clock: FakeClock
) -> None:
    for _ in range(3):
        make_dispatcher().step()

    (collection,) = tasks.list_tasks(realm="::system::")
    assert clock.now() < collection.value.due <= clock.now() + 7 * 86_400_000_000


def test_outage_and_its_end_are_logged_once(settings: Settings, clock: FakeClock) -> None:
    faults = FaultyBackend(open_store("memory://").backend)
    store = Store(faults, url="memory://", settings=settings, clock=clock)
    thread = DispatcherThread(Dispatcher(store, Mailbox(), children=1, kinds=()), wait_seconds=0.001, also=lambda: None)
    faults.fail("read_references", times=20)
    with capture_logs() as logs:
        thread.start()
        deadline = time.monotonic() + 10
        while not any(line["log_level"] == "info" for line in logs) and time.monotonic() < deadline:
            time.sleep(0.01)
        thread.stop()
        thread.join(10)

    assert [(line["log_level"], line["event"]) for line in logs] == [
        ("warning", "the due tasks could not be looked at: again soon"),
        ("info", "the due tasks are looked at again"),
    ]
    assert logs[0]["error"] == "UnavailableError: injected"
