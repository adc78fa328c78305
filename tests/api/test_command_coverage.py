"""What the command line can do, Python can: each command has its methods here, and each option its parameter, or a reason why not."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import click
import pytest

import headwater
from headwater.cli import main

EVERYWHERE = {"store", "context", "output", "quiet", "verbose", "no_headers", "debug", "help"}
"""Options of all commands: how a result is shown, and which store is meant."""
SAME = {"filter": "where", "from": "start", "prefix": "under", "reason": "why", "spark": "on_spark", "to": "end"}
"""What parameters are called whose options have another name."""
WITHOUT = {
    "after": "an iterator goes on by itself",
    "author": "headwater.connect(author=...)",
    "limit": "what is returned is an iterator or a list: take as many as are wanted",
}
"""Options that no method needs."""


@dataclass(frozen=True)
class Covered:
    """The methods that do what a command does.

    same          parameters by the options that have another name
    without       reasons by the options that have no parameter
    """

    methods: tuple[str, ...]
    same: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)


def by(*methods: str, without: Mapping[str, str] | None = None, **same: str) -> Covered:
    return Covered(methods, same, without or {})


_BY_ID = {"by_id": "on='table:id=UUID', with the content_id of RefClient.content"}
COMMANDS: Mapping[str, Covered] = {
    "access explain": by("RealmClient.explain_access", "CatalogClient.explain_access", with_role="roles"),
    "access privileges": by("Connection.privileges"),
    "apply": by("Connection.apply", file="paths"),
    "catalog branch assign": by("BranchClient.assign"),
    "catalog branch create": by("CatalogClient.create_branch"),
    "catalog branch delete": by("BranchClient.delete"),
    "catalog branch list": by(
        "CatalogClient.branches", "CatalogClient.deleted_branches", without={"deleted": "a method of its own"}
    ),
    "catalog branch undelete": by("BranchClient.undelete"),
    "catalog content": by("RefClient.content", "RefClient.metadata", without={"metadata": "a method of its own"}),
    "catalog create": by(
        "RealmClient.create_catalog", allowed_location="allowed_locations", file_place="file_places", property="properties"
    ),
    "catalog delete": by("CatalogClient.delete"),
    "catalog diff": by("RefClient.diff", without={"brief": "with_sides=True asks for the rest"}),
    "catalog find": by("RefClient.find"),
    "catalog history": by("RefClient.history"),
    "catalog list": by("RealmClient.catalogs", "RealmClient.deleted_catalogs", without={"deleted": "a method of its own"}),
    "catalog log": by("RefClient.log", type="content_type"),
    "catalog merge": by("BranchClient.merge", key="keys", property="properties"),
    "catalog purge": by("CatalogClient.purge"),
    "catalog release": by("CatalogClient.release"),
    "catalog show": by("CatalogClient.info"),
    "catalog tables": by("RefClient.entries"),
    "catalog tag assign": by("TagClient.assign"),
    "catalog tag create": by("CatalogClient.create_tag"),
    "catalog tag delete": by("TagClient.delete"),
    "catalog tag list": by("CatalogClient.tags", "CatalogClient.deleted_tags", without={"deleted": "a method of its own"}),
    "catalog tag undelete": by("TagClient.undelete"),
    "catalog transplant": by("BranchClient.transplant", key="keys", property="properties"),
    "catalog undelete": by("CatalogClient.undelete", **{"as": "new_name"}),
    "client-config": by("CatalogClient.client_config", "Connection.engines"),
    "delete": by(
        "Connection.delete_described", file="paths", without={"yes": "dry_run=True tells what a person would be asked about"}
    ),
    "diff": by("Connection.compare", file="paths"),
    "file-table adopt": by("FileTableClient.adopt"),
    "file-table collect": by("FileTableClient.collect"),
    "file-table compact": by("FileTableClient.compact"),
    "file-table create": by("RealmClient.create_file_table", column="columns", split_point="split_points"),
    "file-table delete": by("FileTableClient.delete"),
    "file-table explain": by("FileTableClient.explain"),
    "file-table export": by("FileTableClient.export"),
    "file-table ingest": by("FileTableClient.ingest_files", "FileTableClient.ingest"),
    "file-table list": by("RealmClient.file_tables"),
    "file-table query": by(
        "FileTableClient.query",
        column="columns",
        to="high",
        without={"into": "pyarrow.parquet.write_table writes what query returns"},
        **{"from": "low"},
    ),
    "file-table show": by("FileTableClient.info", without={"unreferenced": "FileTableInfo.unreferenced has all of them"}),
    "file-table split": by("FileTableClient.split"),
    "files codes": by("Connection.file_codes"),
    "files explain": by("Connection.explain_file"),
    "files list": by("CatalogClient.unreferenced_files", code="codes"),
    "files report": by("CatalogClient.report_files", "CatalogClient.last_file_report", without={"run": "a method of its own"}),
    "fsck": by(
        "Connection.check",
        "Connection.plan_repairs",
        "Connection.repair",
        without={"plan": "a method of its own", "repair": "a method of its own"},
    ),
    "gc explain": by("RealmClient.explain", "RefClient.explain"),
    "gc run": by("RealmClient.collect"),
    "grant add": by("RoleClient.grant", on_branches="branches", without=_BY_ID),
    "grant list": by("RoleClient.info", "RealmClient.roles", "CatalogClient.roles", without={"role": "RealmClient.role(name)"}),
    "grant remove": by("RoleClient.revoke", on_branches="branches", without=_BY_ID),
    "import": by("CatalogClient.import_tables"),
    "import-report": by("CatalogClient.write_import_report", "CatalogClient.import_report"),
    "init": by("write_first_manifest"),
    "maintenance resume": by(
        "Connection.resume_maintenance", "RealmClient.resume_maintenance", "CatalogClient.resume_maintenance"
    ),
    "maintenance status": by(
        "Connection.maintenance_stops", "RealmClient.maintenance_stops", "CatalogClient.maintenance_stops"
    ),
    "maintenance stop": by("Connection.stop_maintenance", "RealmClient.stop_maintenance", "CatalogClient.stop_maintenance"),
    "policy effective": by("BranchClient.effective_policies"),
    "policy list": by("CatalogClient.policies"),
    "policy set": by("CatalogClient.set_policy"),
    "policy show": by("CatalogClient.policy"),
    "policy unset": by("CatalogClient.unset_policy"),
    "principal create": by("RealmClient.create_principal", role="roles"),
    "principal disable": by("RealmClient.disable_principal"),
    "principal drop": by("RealmClient.drop_principal"),
    "principal enable": by("RealmClient.enable_principal"),
    "principal list": by("RealmClient.principals"),
    "principal reset": by("RealmClient.reset_credentials"),
    "principal rotate": by("RealmClient.rotate_credentials"),
    "principal show": by("RealmClient.principal"),
    "realm activate": by("RealmClient.activate"),
    "realm create": by("Connection.create_realm", property="properties"),
    "realm deactivate": by("RealmClient.deactivate"),
    "realm delete": by("RealmClient.delete"),
    "realm export": by("RealmClient.export"),
    "realm import": by("Connection.import_realm", inactive="active"),
    "realm list": by("Connection.realms"),
    "realm purge": by("RealmClient.purge"),
    "realm release": by("RealmClient.release"),
    "realm reset-credentials": by("RealmClient.reset_credentials"),
    "realm restore": by(
        "RealmClient.restore", "RealmClient.plan_restore", to="to", without={"dry_run": "plan_restore is a method of its own"}
    ),
    "realm rotate-credentials": by("RealmClient.rotate_credentials"),
    "realm show": by("RealmClient.info"),
    "role assign": by("RoleClient.assign", to="holders"),
    "role create": by("RealmClient.create_role", "CatalogClient.create_role", to="holders"),
    "role drop": by("RoleClient.drop"),
    "role list": by("RealmClient.roles", "CatalogClient.roles"),
    "role show": by("RoleClient.info"),
    "role unassign": by("RoleClient.unassign", **{"from": "holder"}),
    "runs list": by("Connection.runs", without={"types": "RunInfo.counts has the types of a run"}),
    "runs report": by("Connection.report_runs"),
    "runs show": by("TaskClient.runs", without={"attempt": "RunInfo.attempt: there is a run for each"}),
    "snapshots expire": by("CatalogClient.expire_snapshots", branch="branches", table="tables"),
    "snapshots list": by("RefClient.snapshots"),
    "store create": by("connect"),
    "table adopt": by(
        "BranchClient.adopt",
        "BranchClient.adopt_all",
        without={"all": "a method of its own", "confirm": "the keys are named; before adopt_all, guests lists them"},
    ),
    "table guests": by("RefClient.guests"),
    "table release": by("RealmClient.release_location"),
    "task cancel": by("TaskClient.cancel"),
    "task figures": by("Connection.task_figures"),
    "task list": by(
        "Connection.tasks",
        without=dict.fromkeys(("watch", "every", "for"), "a program that waits asks again when it likes to"),
    ),
    "task retry": by("TaskClient.retry"),
    "task run": by(
        "TaskClient.run",
        "RealmClient.collect",
        "CatalogClient.expire_snapshots",
        "CatalogClient.report_files",
        "FileTableClient.collect",
    ),
    "task run-now": by("TaskClient.run_now"),
    "task show": by("TaskClient.info"),
    "version": by("__version__"),
}
COMMAND_LINE_ONLY = {
    "completion": "it is for a shell",
    **dict.fromkeys(
        ("context list", "context set", "context show", "context unset", "context use"),
        "contexts are defaults of the command line: a program names its store",
    ),
    **dict.fromkeys(("serve", "up", "worker", "file-committer"), "a process of its own, which ends when it is told to"),
    **dict.fromkeys(
        ("file-queue aside", "file-queue discard", "file-queue retry", "file-queue show"),
        "for whoever runs the queue of a file committer: it is no part of a store",
    ),
    "spark-archive": "it packs the environment that a cluster unpacks",
}


def commands(
    group: click.Group = main, above: click.Context | None = None, path: str = ""
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, parent=above, info_name=path or "headwater")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, context, f"{path} {name}".strip())
        elif not command.hidden:
            yield f"{path} {name}".strip(), command


ALL_COMMANDS = dict(commands())


def options_of(command: click.Command) -> set[str]:
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    return {max(option.opts, key=len).lstrip("-").replace("-", "_") for option in options} - EVERYWHERE


def find_public(method: str) -> Any:
    owner, _, name = method.rpartition(".")
    return getattr(getattr(headwater, owner) if owner else headwater, name)


def parameters_of(covered: Covered) -> set[str]:
    found = map(find_public, covered.methods)
    return {name for each in found if callable(each) for name in inspect.signature(each).parameters}


def test_every_command_has_a_method_or_a_reason() -> None:
    assert ALL_COMMANDS.keys() == COMMANDS.keys() | COMMAND_LINE_ONLY.keys()
    assert not COMMANDS.keys() & COMMAND_LINE_ONLY.keys()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_has_a_parameter_or_a_reason(path: str) -> None:
    covered, options = COMMANDS[path], options_of(ALL_COMMANDS[path])
    parameters = parameters_of(covered)
    wanted = {option: covered.same.get(option, SAME.get(option, option)) for option in options}

    missing = {option for option, name in wanted.items() if name not in parameters and option not in parameters}
    assert missing <= covered.without.keys() | WITHOUT.keys()
    assert covered.without.keys() <= missing, "there is a parameter now, or no such option any more"
    assert covered.same.keys() <= options
