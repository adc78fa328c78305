"""What help adds to every command: its line in the list of commands, and examples. All in one place, so that they agree.

A house test sees that no command lacks them, that each line fits into 80 columns, and that the program takes every example.
"""

from __future__ import annotations

from typing import NamedTuple

PROGRAM = "headwater"


class HelpText(NamedTuple):
    """What help adds to a command.

    summary       its line in the list of commands
    examples      command lines, without the program's name; a group has none
    """

    summary: str
    examples: tuple[str, ...] = ()


def _of(summary: str, *examples: str) -> HelpText:
    return HelpText(summary, examples)


HELP_TEXTS = {
    "access": _of("Explain who may do what, and list the privileges"),
    "access explain": _of(
        "Say whether a principal may do something, and why",
        "access explain acme/lake alice TABLE_READ_DATA table:sales.orders",
        "access explain acme/lake@dev alice TABLE_WRITE_DATA table:sales.orders",
    ),
    "access privileges": _of("List the privileges", "access privileges"),
    "apply": _of(
        "Apply manifests, as far as possible now",
        "apply -f lake.yaml",
        "apply -f manifests/ --dry-run",
        "apply -f -",
    ),
    "catalog": _of("List, create, read, branch and merge catalogs"),
    "catalog branch": _of("List, create, move and delete branches"),
    "catalog branch assign": _of("Move a branch to another commit", "catalog branch assign acme/lake dev main~2"),
    "catalog branch create": _of(
        "Create a branch at a commit",
        "catalog branch create acme/lake dev",
        "catalog branch create acme/lake fix --source main~2",
    ),
    "catalog branch delete": _of("Delete a branch", "catalog branch delete acme/lake dev"),
    "catalog branch list": _of(
        "List the branches of a catalog",
        "catalog branch list acme/lake",
        "catalog branch list acme/lake --filter \"ref.name.startsWith('etl/')\"",
        "catalog branch list acme/lake --deleted",
    ),
    "catalog branch undelete": _of("Undelete a branch where it was", "catalog branch undelete acme/lake dev"),
    "catalog content": _of(
        "Show all that is known of tables, views and the like",
        "catalog content acme/lake sales.orders",
        "catalog content acme/lake@dev sales.orders --metadata",
    ),
    "catalog create": _of("Create a catalog", "catalog create acme/lake --base-location s3://bucket/lake/"),
    "catalog delete": _of(
        "Delete a catalog with all its branches and tags",
        "catalog delete acme/lake",
        "catalog delete acme/lake --confirm acme/lake",
    ),
    "catalog diff": _of(
        "Show what differs between two branches, tags or commits",
        "catalog diff acme/lake main dev",
        "catalog diff acme/lake main~5 main --prefix sales",
        "catalog diff acme/lake main dev --brief",
    ),
    "catalog find": _of(
        "Show the keys of contents by their ids", "catalog find acme/lake 6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    ),
    "catalog history": _of("Show what happened to one table or view", "catalog history acme/lake sales.orders --limit 10"),
    "catalog list": _of("List the catalogs of a realm", "catalog list acme", "catalog list acme --deleted"),
    "catalog log": _of(
        "Show commits, newest first",
        "catalog log acme/lake",
        "catalog log acme/lake@dev --since 7d --author ann",
        "catalog log acme/lake --key sales.orders",
    ),
    "catalog merge": _of(
        "Merge a branch, tag or commit into a branch",
        "catalog merge acme/lake dev --dry-run",
        "catalog merge acme/lake dev --key sales.orders=FORCE",
        "catalog merge acme/lake@release main",
    ),
    "catalog purge": _of("End the hold of a deleted catalog now", "catalog purge acme/lake --confirm acme/lake"),
    "catalog release": _of("Let any resource take a catalog over", "catalog release acme/lake"),
    "catalog show": _of("Show everything about one catalog", "catalog show acme/lake", "catalog show acme/lake -o json"),
    "catalog tables": _of(
        "List tables, views, namespaces and functions",
        "catalog tables acme/lake",
        "catalog tables acme/lake@dev --prefix sales",
        "catalog tables acme/lake --filter \"entry.contentType == 'ICEBERG_VIEW'\"",
    ),
    "catalog tag": _of("List, create, move and delete tags"),
    "catalog tag assign": _of("Move a tag to another commit", "catalog tag assign acme/lake v1 main"),
    "catalog tag create": _of(
        "Create a tag at a commit", "catalog tag create acme/lake v1", "catalog tag create acme/lake v1 --source dev"
    ),
    "catalog tag delete": _of("Delete a tag", "catalog tag delete acme/lake v1"),
    "catalog tag list": _of("List the tags of a catalog", "catalog tag list acme/lake"),
    "catalog tag undelete": _of("Undelete a tag where it was", "catalog tag undelete acme/lake v1"),
    "catalog transplant": _of(
        "Cherry-pick commits onto a branch", "catalog transplant acme/lake dev 0123456789abcdef 0123456789abcdf0"
    ),
    "catalog undelete": _of(
        "Undelete a catalog", "catalog undelete acme/lake", "catalog undelete acme/0123456789abcdef --as old-lake"
    ),
    "client-config": _of(
        "Print what an engine needs to reach a served catalog",
        "client-config",
        "client-config spark acme/lake@dev --url https://lake.example.com",
        "client-config pyiceberg acme/lake --form yaml",
    ),
    "completion": _of(
        "Print the script that lets a shell complete commands",
        "completion bash",
        "completion zsh",
        "completion fish",
    ),
    "context": _of("Say what commands may leave out: store, catalog, author"),
    "context list": _of("List the contexts", "context list"),
    "context set": _of(
        "Create or change a context",
        "context set work acme/lake@dev --store postgresql://headwater@db/headwater",
        "context set work --author ann -o json",
    ),
    "context show": _of("Show a context, or what counts now", "context show", "context show work"),
    "context unset": _of("Remove a context, or a part of it", "context unset work", "context unset work ref author"),
    "context use": _of("Use a context from now on, or none", "context use work", "context use --none"),
    "delete": _of("Delete what manifests describe", "delete -f lake.yaml", "delete -f manifests/ --yes"),
    "diff": _of("Compare manifests with what is stored", "diff -f lake.yaml", "diff -f manifests/ -o json"),
    "file-committer": _of("Apply queued requests on file references", "file-committer"),
    "file-queue": _of("Show and mend requests on file references that wait"),
    "file-queue aside": _of("List the requests that were set aside", "file-queue aside"),
    "file-queue discard": _of("Forget requests that were set aside", "file-queue discard 0123456789abcdef"),
    "file-queue retry": _of("Put requests that were set aside back", "file-queue retry 0123456789abcdef"),
    "file-queue show": _of("Show how many requests wait, by file table", "file-queue show"),
    "file-table": _of("Create, fill, query and compact sorted Parquet tables"),
    "file-table adopt": _of(
        "Make an imported file table writable", "file-table adopt acme/orders --location s3://bucket/tables"
    ),
    "file-table collect": _of("Delete files that nobody refers to", "file-table collect acme/orders --dry-run"),
    "file-table compact": _of("Merge files of each leaf into one", "file-table compact acme/orders"),
    "file-table create": _of(
        "Create a file table",
        "file-table create acme/orders --location s3://bucket/tables --column id=long --column day=date --key id",
    ),
    "file-table delete": _of("Delete a file table with all its files", "file-table delete acme/orders --confirm acme/orders"),
    "file-table explain": _of(
        "Tell who refers to a file, and when it may go", "file-table explain acme/orders 032ea09d8ce7c000-0-0.parquet"
    ),
    "file-table export": _of(
        "Write all references of one moment to a file", "file-table export acme/orders references.parquet"
    ),
    "file-table ingest": _of("Add the rows of Parquet files", "file-table ingest acme/orders monday.parquet --request monday"),
    "file-table list": _of("List the file tables of a realm", "file-table list acme"),
    "file-table query": _of(
        "Print rows by their key",
        "file-table query acme/orders --key 4711",
        "file-table query acme/orders --from 1000 --to 2000 --column amount",
    ),
    "file-table show": _of("Show everything about one file table", "file-table show acme/orders"),
    "file-table split": _of("Split large leaves", "file-table split acme/orders --dry-run"),
    "files": _of("Tell what nobody refers to in a lake, and why"),
    "files codes": _of("Explain the codes of files and places", "files codes"),
    "files explain": _of(
        "Tell who refers to a file, and when it may go", "files explain s3://bucket/lake/sales/orders/data/1.parquet"
    ),
    "files list": _of("List the files that nobody refers to", "files list acme/lake --code Due"),
    "files report": _of(
        "Show what nobody refers to, and how much that is", "files report acme/lake", "files report acme/lake --run"
    ),
    "fsck": _of(
        "Check everything that is stored, and repair it",
        "fsck",
        "fsck --realm acme --plan",
        "fsck --realm acme --repair --confirm acme",
    ),
    "gc": _of("Collect garbage, and show what is kept and why"),
    "gc explain": _of(
        "Tell why an object is kept, or when it goes", "gc explain acme/lake@main~2", "gc explain acme 0123456789abcdef"
    ),
    "gc log": _of("List the last runs of maintenance", "gc log --realm acme --since 7d", "gc log --failed"),
    "gc report": _of("Write the last runs as one page of HTML", "gc report report.html --realm acme"),
    "gc run": _of("Collect the garbage of a realm now", "gc run acme --dry-run", "gc run acme"),
    "grant": _of("Add, remove and list what roles may do"),
    "grant add": _of(
        "Let a role do something",
        "grant add acme/lake reader TABLE_READ_DATA --on namespace:sales",
        "grant add acme/lake writer TABLE_WRITE_DATA --on-branches 'dev*'",
    ),
    "grant list": _of("List what roles may do", "grant list acme/lake --role reader"),
    "grant remove": _of("Take grants back", "grant remove acme/lake reader TABLE_READ_DATA --on namespace:sales"),
    "import": _of(
        "Import Iceberg tables that lie in a folder or bucket",
        "import acme/lake s3://bucket/warehouse --dry-run",
        "import acme/lake ./warehouse --mode sync --report import.html",
    ),
    "import-report": _of(
        "Write what became of each table in an import",
        "import-report acme/lake report.html",
        "import-report acme/lake tables.parquet",
    ),
    "init": _of("Write a first manifest, with comments", "init", "init lake --realm sales --catalog orders"),
    "maintenance": _of("Stop and resume scheduled work on the lake"),
    "maintenance resume": _of("End a stop", "maintenance resume acme/lake"),
    "maintenance status": _of("List what is stopped", "maintenance status"),
    "maintenance stop": _of("Stop it for the store, a realm or a catalog", "maintenance stop acme/lake --reason 'an audit'"),
    "policy": _of("Say how much of their lake tables keep"),
    "policy effective": _of(
        "Show what holds for a table, and where it comes from",
        "policy effective acme/lake sales.orders",
        "policy effective acme/lake@dev sales.orders",
    ),
    "policy list": _of("List the policies of a catalog and its tables", "policy list acme/lake"),
    "policy set": _of(
        "Set a policy of a catalog or of a table",
        "policy set acme/lake snapshots --max-age 5d --min-to-keep 3",
        "policy set acme/lake metadata-files --table sales.orders --keep 50",
    ),
    "policy show": _of("Show one policy", "policy show acme/lake snapshots"),
    "policy unset": _of("Remove a policy, or one of its rules", "policy unset acme/lake snapshots --branch 'etl/*'"),
    "principal": _of("List, create, disable and drop principals"),
    "principal create": _of("Create a principal", "principal create acme alice --credentials alice.json --role analysts"),
    "principal disable": _of("Refuse a principal from now on", "principal disable acme alice"),
    "principal drop": _of("Drop a principal", "principal drop acme alice"),
    "principal enable": _of("Let a disabled principal log in again", "principal enable acme alice"),
    "principal list": _of("List the principals of a realm", "principal list acme"),
    "principal reset": _of("Reset credentials that may have leaked", "principal reset acme alice --credentials new.json"),
    "principal rotate": _of("Rotate credentials", "principal rotate acme alice --credentials new.json --overlap 1h"),
    "principal show": _of("Show one principal", "principal show acme alice"),
    "realm": _of("List, create, move, restore and delete realms"),
    "realm activate": _of("Let an INACTIVE realm serve its users again", "realm activate acme"),
    "realm create": _of(
        "Create a realm and bootstrap it",
        "realm create acme --credentials acme.json",
        "realm create acme --credentials -",
    ),
    "realm deactivate": _of("Let a realm serve no users", "realm deactivate acme"),
    "realm delete": _of("Delete the entry of a PURGED realm", "realm delete acme --confirm acme"),
    "realm export": _of("Export a realm to a file", "realm export acme acme.realm --wait"),
    "realm import": _of("Create a realm from an exported file", "realm import acme.realm copy --inactive"),
    "realm list": _of("List all realms", "realm list"),
    "realm purge": _of("Delete everything in an INACTIVE realm", "realm purge acme --confirm acme"),
    "realm release": _of("Let any resource adopt a realm", "realm release acme"),
    "realm reset-credentials": _of(
        "Reset root credentials that may have leaked", "realm reset-credentials acme --credentials new.json"
    ),
    "realm restore": _of(
        "Restore a realm to an earlier state",
        "realm restore acme/lake@main --to 90m --dry-run",
        "realm restore acme/lake@main --to main~1 --dry-run",
        "realm restore acme --to 2026-05-28T20:26:40Z --confirm acme",
    ),
    "realm rotate-credentials": _of(
        "Rotate the root credentials", "realm rotate-credentials acme --credentials new.json --overlap 1h"
    ),
    "realm show": _of("Show everything about one realm", "realm show acme"),
    "role": _of("List, create, assign and drop roles"),
    "role assign": _of(
        "Give a role to somebody", "role assign acme analysts --to alice", "role assign acme/lake reader --to analysts"
    ),
    "role create": _of("Create a role", "role create acme analysts --to alice", "role create acme/lake reader --to analysts"),
    "role drop": _of("Drop a role with its grants", "role drop acme/lake reader"),
    "role list": _of("List roles, with who has them", "role list acme", "role list acme/lake"),
    "role show": _of("Show one role", "role show acme/lake reader"),
    "role unassign": _of("Take a role from somebody", "role unassign acme analysts --from alice"),
    "runs": _of("List, show and draw what maintenance did"),
    "runs list": _of("List the last runs of maintenance", "runs list", "runs list --realm acme --kind gc --since 7d"),
    "runs report": _of(
        "Write the last runs as one page of HTML", "runs report runs.html", "runs report acme.html --realm acme --since 30d"
    ),
    "runs show": _of(
        "Show all that one run counted",
        "runs show 0123456789abcdef",
        "runs show 0123456789abcdef --attempt 1 -o json",
    ),
    "serve": _of("Serve the catalogs to engines over HTTP", "serve", "serve --listen 127.0.0.1:9000 --realm acme"),
    "snapshots": _of("List the snapshots of tables, and expire them"),
    "snapshots expire": _of(
        "Expire snapshots that policies let go",
        "snapshots expire acme/lake --dry-run",
        "snapshots expire acme/lake --older-than 7d --retain-last 5 --table sales.orders",
    ),
    "snapshots list": _of("List the snapshots of a table", "snapshots list acme/lake sales.orders"),
    "spark-archive": _of("Pack headwater for Spark executors", "spark-archive headwater.tar.gz"),
    "store": _of("Set up the database of a store"),
    "store create": _of("Set up the database", "store create", "store create --store postgresql://headwater@db/headwater"),
    "table": _of("Show which tables are guests, adopt them, release places"),
    "table adopt": _of(
        "Make guests at home in their catalog",
        "table adopt acme/lake sales.orders --confirm acme/lake",
        "table adopt acme/lake --all --under sales",
    ),
    "table guests": _of("List tables that the catalog does not own", "table guests acme/lake --with-homes"),
    "table release": _of("Release places of dropped tables", "table release acme s3://lake/sales/orders"),
    "task": _of("List, retry, cancel and run tasks"),
    "task cancel": _of("Cancel a task", "task cancel 0123456789abcdef"),
    "task figures": _of("Count tasks by kind, and how long they take", "task figures"),
    "task list": _of("List tasks", "task list --realm acme", "task list --state RUNNING"),
    "task retry": _of("Retry a failed or cancelled task", "task retry 0123456789abcdef"),
    "task run": _of(
        "Run one task here and now",
        "task run gc acme",
        "task run expire-snapshots acme/lake",
        "task run 0123456789abcdef",
    ),
    "task run-now": _of("Make a waiting task due now", "task run-now 0123456789abcdef"),
    "task show": _of("Show the story of one task", "task show 0123456789abcdef"),
    "up": _of("Apply a folder of manifests, and do the work", "up ./manifests --once", "up ./manifests"),
    "version": _of("Show the versions of Headwater and Python", "version"),
    "worker": _of("Do the tasks of the store", "worker --concurrency 4"),
}
"""By the words after the program's name."""


def examples_text(path: str) -> str:
    """The examples of a command as the end of its help; empty where it has none."""
    examples = HELP_TEXTS[path].examples if path in HELP_TEXTS else ()
    # click keeps the lines of a paragraph that begins with \b
    return "\n".join(["\b", "Examples:", *(f"  {PROGRAM} {line}" for line in examples)]) if examples else ""
