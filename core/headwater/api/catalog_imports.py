"""Imports that somebody asks for by hand: their task, and what surveys the tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any, cast, get_args, get_type_hints

import msgspec

from headwater.api.locations import folder_location
from headwater.catalogs import Catalogs, ImportSpec
from headwater.errors import RefusedError
from headwater.iceberg import SurveyProgress, SurveyResult, SurveyScope, survey_in_process
from headwater.jobs import IMPORT, SPARK, TableSurvey
from headwater.realms import RealmRegistry
from headwater.settings import Settings
from headwater.store import ObjectId, Store, Versioned, id_text
from headwater.tasks import Task, TaskQueue

BY_HAND = "by hand"
"""What an import is called that stands in no resource."""
ENTRY_POINTS = "headwater.surveys"


class SurveyInProcess:
    """Looks at tables in this process."""

    def __call__(self, scope: SurveyScope, progress: SurveyProgress) -> SurveyResult:
        return survey_in_process(scope, progress=progress)

    @property
    def name(self) -> str:
        return "process (by hand)"


def import_spec(locations: Iterable[str], *, inventory: str | None, **fields: Any) -> ImportSpec:
    """What is asked for by hand; raises RefusedError for a word that is none of those that there are, and for what contradicts itself."""
    for name in ("mode", "verify", "gone"):
        words = get_args(get_type_hints(ImportSpec)[name])
        if fields[name] not in words:
            raise RefusedError(f"{name}={fields[name]!r}: it is one of {', '.join(words)}")
    if fields["gone"] == "drop" and fields["mode"] != "sync":
        raise RefusedError("tables that are gone are dropped by a sync: an import once only brings tables in")
    return ImportSpec(
        name=BY_HAND,
        locations=tuple(map(folder_location, locations)),
        inventory=None if inventory is None else folder_location(inventory),
        **fields,
    )


def load_spark_survey(settings: Settings) -> TableSurvey:
    """What the pipeline's package brings.

    raises        RefusedError where it is not installed, or Spark cannot run here; ModuleNotFoundError where a library is missing, of
                  which the command line says how to get it
    """
    for point in entry_points(group=ENTRY_POINTS, name=SPARK):
        return cast(TableSurvey, point.load()(settings))
    raise RefusedError("an import on Spark needs headwater's pipeline, which is not installed: pip install 'headwater[spark]'")


def submit_import(store: Store, realm_id: str, catalog: str, spec: ImportSpec, *, author: str, on_spark: bool) -> ObjectId:
    """The task of an import, also where it is under way already.

    raises        RefusedError where that one is done in another way than is asked for now
    """
    realm = RealmRegistry(store).read_realm(realm_id)
    definition = Catalogs(RealmRegistry(store).open_realm(realm_id)).read_catalog(catalog)
    arguments = {
        "catalog": catalog,
        "catalogId": definition.id,
        "spec": msgspec.json.decode(msgspec.json.encode(spec)),
        "author": author,
        **({"engine": SPARK} if on_spark else {}),
    }
    tasks, subject = TaskQueue(store), f"{catalog}/{BY_HAND}/{spec.digest()[:8]}"
    task = tasks.read_task(
        tasks.submit_task(IMPORT, realm=realm.id, realm_key=realm.key, subject=subject, arguments=arguments).id
    )
    _check_same(task, arguments)
    return task.id


def other_task_error(task: Versioned[Task], how: str = "") -> RefusedError:
    """The refusal to take a task that is under way, perhaps for somebody else, for the one that is asked for.

    how           in what it differs; default is its arguments
    """
    how = how or f"with {task.value.arguments}"
    return RefusedError(f"task {id_text(task.id)} ({task.value}) is under way {how}: wait for it, or cancel it")


def _check_same(task: Versioned[Task], arguments: Mapping[str, Any]) -> None:
    others = task.value.arguments
    if {**others, "author": ""} == {**arguments, "author": ""}:
        return
    if others.get("engine") == arguments.get("engine"):
        raise other_task_error(task)
    raise other_task_error(task, "with --spark" if others.get("engine") == SPARK else "without --spark")
