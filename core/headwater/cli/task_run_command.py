"""``headwater task run``: one task, in this process, by the protocol that workers follow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click

from headwater.api.task_work import TASK_WORK, load_task_body
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import SCOPE, Address, AddressForm
from headwater.cli.local_run import run_or_detach
from headwater.cli.task_commands import TASK, TASK_PAGE, TaskPage, task
from headwater.console import prints
from headwater.errors import RefusedError
from headwater.exits import FINDINGS
from headwater.files import open_file_table
from headwater.files.open_references import open_file_references
from headwater.gc import check_collectable
from headwater.jobs import COLLECT, COLLECT_FILES, EXPIRE_SNAPSHOTS, FSCK, REPORT_FILES, submit_file_collection
from headwater.jobs.catalog_tasks import submit_catalog_task
from headwater.outcome_text import has_findings, outcome_lines
from headwater.realms import RealmRegistry
from headwater.store import ObjectId, Store, id_of, id_text
from headwater.tasks import TaskQueue

ASKED_BY = {
    "export": "headwater realm export",
    "import": "headwater import",
    "load": "headwater realm import",
    "purge": "headwater realm purge",
    "purge-table": "the purge of a table that a client drops",
    "restore": "headwater realm restore",
}
"""What asks for tasks of kinds that need more than a name."""

FILE_TABLE = AddressForm("REALM/TABLE", "file table")
CATALOG = AddressForm("REALM/CATALOG", "catalog")


@task.command(name="run")
@click.argument("what", metavar="TASK|KIND")
@click.argument("scope", metavar="[REALM[/CATALOG]]", required=False)
@prints(TASK)
def run_task_command(session: CliSession, what: str, scope: str | None) -> int:
    """Run one task here and now, with the lease that a worker would have, and show how it ended.

    TASK is the id of a task that waits. KIND asks for a new one: gc or fsck of a realm, expire-snapshots or report-files of a catalog,
    file-gc of a file table. One that is asked for already is taken; one that a worker runs is waited for.

    Exit code 8 if tables were quarantined, files could not be deleted, or a check found damage or trouble.
    """
    submit = _asked_task(what, scope) if scope is not None or what in TASK_WORK else None
    task_id = None if submit is not None else _id(what)
    with session.open_store() as store:
        chosen = submit(store) if submit is not None else task_id
        assert chosen is not None, "one of them is given"
        kind = TaskQueue(store).read_task(chosen).value.kind
        run_or_detach(session, store, chosen, load_task_body(kind, session.settings), detach=False)
        ended = TaskQueue(store).read_task(chosen)
        if session.is_text and session.verbose:
            session.show(TASK_PAGE, TaskPage(ended, store.clock.now()))
        else:
            lines = outcome_lines(kind, ended.value.outcome or {})
            session.show_done(TASK, ended, f"task {id_text(chosen)} ({ended.value}) is {ended.value.state}", *lines)
    return FINDINGS if has_findings(kind, ended.value.outcome or {}) else 0


def _id(text: str) -> ObjectId:
    try:
        return id_of(text)
    except RefusedError as wrong:
        kinds = ", ".join(sorted(TASK_WORK.keys() - ASKED_BY.keys()))
        raise click.UsageError(f"{text!r} is neither the id of a task nor one of the kinds {kinds}") from wrong


def _asked_task(kind: str, scope: str | None) -> Callable[[Store], ObjectId]:
    """What asks for a task of this kind; raises UsageError for what cannot be asked for like this."""
    if kind in ASKED_BY:
        raise click.UsageError(
            f"a task of kind {kind} needs more than a name: {ASKED_BY[kind]} asks for it; run one that waits by its id"
        )
    makers: dict[str, tuple[AddressForm, Callable[[Address, Store], ObjectId]]] = {
        COLLECT: (SCOPE, _ask_collection),
        COLLECT_FILES: (FILE_TABLE, _ask_file_collection),
        EXPIRE_SNAPSHOTS: (CATALOG, partial(_ask_lake_work, EXPIRE_SNAPSHOTS)),
        FSCK: (SCOPE, _ask_check),
        REPORT_FILES: (CATALOG, partial(_ask_lake_work, REPORT_FILES)),
    }
    if kind not in makers:
        raise click.UsageError(f"{kind!r} is no kind of task; there are {', '.join(makers)}")
    form, ask = makers[kind]
    if scope is None:
        raise click.UsageError(f"say of what: headwater task run {kind} {form.metavar}")
    try:
        address = form.parse_address(scope)
    except RefusedError as wrong:
        raise click.UsageError(str(wrong)) from wrong
    if form is SCOPE and address.name:
        raise click.UsageError(f"{kind} is of a whole realm: headwater task run {kind} {address.realm}")
    return partial(ask, address)


def _ask_collection(address: Address, store: Store) -> ObjectId:
    key = check_collectable(store, address.realm)
    return TaskQueue(store).submit_task(COLLECT, realm=address.realm, realm_key=key).id


def _ask_check(address: Address, store: Store) -> ObjectId:
    realm = RealmRegistry(store).read_realm(address.realm)
    return TaskQueue(store).submit_task(FSCK, realm=realm.id, realm_key=realm.key).id


def _ask_file_collection(address: Address, store: Store) -> ObjectId:
    rows = RealmRegistry(store).open_realm(address.realm)
    with open_file_table(rows, address.name, partial(open_file_references, store)) as table:
        table.check_writable()
    return submit_file_collection(store, RealmRegistry(store).read_realm(address.realm), address.name).id


def _ask_lake_work(kind: str, address: Address, store: Store) -> ObjectId:
    return submit_catalog_task(store, kind, address.realm, address.name).id
