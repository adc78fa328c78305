"""``headwater catalog tables``, ``content``, ``find``, ``log``, ``history`` and ``diff``: what a catalog holds, and what it held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from uuid import UUID

import click
import msgspec

from headwater.catalogs import (
    Catalog,
    CatalogLog,
    CommittedOperation,
    Content,
    ContentChange,
    ContentEntry,
    ContentKey,
    ContentType,
    ContentValue,
    DiffExpression,
    EntryExpression,
    KeyChange,
    KeyComparison,
    KeyHistory,
    LogEntry,
    LogExpression,
    LogFilter,
    MergeEffect,
    Namespace,
    content_type_of,
)
from headwater.cli.cli_session import CliSession, identifier, opened_catalog
from headwater.cli.command_address import Address, catalog_argument, catalog_ref_argument
from headwater.cli.command_options import END_TIME, ID, KEY, REF, TIME, filter_option, limit_option, live_names
from headwater.cli.comparison_text import SIDE_FIELDS, comparison_lines, side_data
from headwater.commits import LogEnd
from headwater.console import ResultView, ViewField, list_of, option_group, prints, text_field, time_field
from headwater.errors import NotFoundError, RefusedError
from headwater.store import ObjectId, id_text


def _content_type(kind: ContentType | int | None) -> str | None:
    return kind.name if isinstance(kind, ContentType) else None if kind is None else f"type {kind}"


_KEY = "as in a [content](#content)"

ENTRY: ResultView[ContentEntry] = ResultView(
    "content",
    "contents",
    (
        ViewField("key", "names joined by dots; a dot inside a name has a backslash before it", header="KEY", form=str),
        ViewField("elements", "the names", "key.elements"),
        ViewField("type", "ICEBERG_TABLE, DELTA_LAKE_TABLE, ICEBERG_VIEW, NAMESPACE or UDF", header="TYPE", form=_content_type),
        ViewField("contentId", "survives renames", header="CONTENT ID", form=str),
    ),
)


def _operation(operation: CommittedOperation) -> dict[str, Any]:
    return {
        "action": operation.action,
        "key": str(operation.key),
        "type": _content_type(operation.type),
        "contentId": text_field(operation.content_id),
    }


COMMIT: ResultView[LogEntry] = ResultView(
    "commit",
    "commits",
    (
        ViewField("hash", "the commit's id", header="COMMIT"),
        ViewField("seq", "1 for the first, then one more each", header="SEQ"),
        ViewField("time", "when it was made", header="TIME", form=time_field),
        ViewField("committer", "the principal whose request made it; empty: not known", "meta.committer", "COMMITTER"),
        ViewField("authors", "as the request named them, not verified", "meta.authors", "AUTHORS"),
        ViewField("changes", "how many keys it changed", "operations", "CHANGES", len),
        ViewField("message", "why", header="MESSAGE"),
        ViewField("signedOffBy", "who signed it off", "meta.signed_off_by"),
        ViewField(
            "properties", "free names, each with its values", lambda c: {n: list(v) for n, v in c.meta.properties.items()}
        ),
        ViewField(
            "authorTime", "when its author made it, where that was earlier; null: then", "meta.author_time", form=time_field
        ),
        ViewField("parent", "the commit before; null: it is the first", form=identifier),
        ViewField("merged", "heads that were merged in", "meta.merged", form=list_of(identifier)),
        ViewField(
            "operations",
            "what it did to each key",
            form=list_of(_operation),
            inside={
                "[].action": "PUT or DELETE",
                "[].key": _KEY,
                "[].type": f"{_KEY}; null where it was removed",
                "[].contentId": "null where it was removed",
            },
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class ContentRow:
    """A content with the key under which it was read."""

    key: ContentKey
    content: Content


def _fields(content: Content) -> dict[str, Any]:
    """Returns all fields of a content except its id, named as in JSON."""
    names = (field.name for field in msgspec.structs.fields(type(content)) if field.name not in ("id", "unknown"))
    return {_camel_case(name): msgspec.to_builtins(getattr(content, name)) for name in names}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


CONTENT: ResultView[ContentRow] = ResultView(
    "content in full",
    "contents",
    (
        ViewField("key", _KEY, header="KEY", form=str),
        ViewField("type", _KEY, lambda c: _content_type(content_type_of(c.content)), "TYPE"),
        ViewField("contentId", "survives renames", "content.id", "CONTENT ID", text_field),
        ViewField(
            "fields",
            "what its type has; null: not given",
            "content",
            form=_fields,
            inside={
                ".metadataLocation": "of an Iceberg table or view, or a function: where its metadata lies",
                ".snapshotId": "of an Iceberg table; -1: it has no snapshot",
                ".schemaId": "of an Iceberg table or view",
                ".specId": "of an Iceberg table: its partition spec",
                ".sortOrderId": "of an Iceberg table",
                ".tableUuid": "of an Iceberg table",
                ".versionId": "of an Iceberg view, or a function",
                ".viewUuid": "of an Iceberg view",
                ".metadataLocationHistory": "of a Delta Lake table, newest first as its writer gave it",
                ".checkpointLocationHistory": "of a Delta Lake table",
                ".lastCheckpoint": "of a Delta Lake table",
                ".properties": "of a namespace",
                ".signatureId": "of a function",
                ".sqlText": "of a view or function of an old client",
                ".dialect": "of a view or function of an old client",
            },
        ),
    ),
)


def _value(value: ContentValue | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"type": _content_type(value.type), "contentId": str(value.content_id), "digest": value.digest.hex()}


_VALUE = {".type": _KEY, ".contentId": "survives renames", ".digest": "equal for equal content"}

KEY_CHANGE: ResultView[KeyChange] = ResultView(
    "change of one content",
    "changes",
    (
        ViewField("hash", "the commit that made it", "entry.hash", "COMMIT"),
        ViewField("time", "when it was made", "entry.time", "TIME", time_field),
        ViewField(
            "action",
            "CREATED, RESTORED (by a restore that brought it back), CHANGED, RENAMED or DELETED; PUT where the commit before was collected,"
            " so that the change is unknown",
            header="ACTION",
        ),
        ViewField("key", "where it stood afterwards; a deleted one: before", header="KEY", form=str),
        ViewField("renamedFrom", "where it stood before, if that was elsewhere", header="FROM", form=text_field),
        ViewField("value", "what it was afterwards; null: deleted", form=_value, inside=_VALUE),
        ViewField("committer", "the principal whose request made it; empty: not known", "entry.meta.committer", "COMMITTER"),
        ViewField("authors", "as the request named them, not verified", "entry.meta.authors", "AUTHORS"),
        ViewField("message", "why", "entry.message", "MESSAGE"),
    ),
    named_by="key",
)


_EFFECTS = {
    MergeEffect.PUT: "merging {1} into {0} brings it",
    MergeEffect.REMOVED: "merging {1} into {0} removes it",
    MergeEffect.CONFLICT: "merging {1} into {0} is a conflict",
    MergeEffect.LEFT: "merging {1} into {0} leaves it as it is on {0}",
}


@dataclass(frozen=True, slots=True)
class ComparedChange:
    """A difference with what both sides did to its key, and what merging the second into the first would do; None: nobody asked.

    merge         None: a base would have to be named, too
    """

    change: ContentChange
    sides: KeyComparison | None = None
    merge: MergeEffect | None = None


def _changed_type(row: ComparedChange) -> str | None:
    value = row.change.after or row.change.before
    assert value is not None  # a key that holds nothing on either side does not differ
    return _content_type(value.type)


def _both_sides(comparison: KeyComparison | None) -> dict[str, Any] | None:
    return None if comparison is None else {"before": side_data(comparison.into), "after": side_data(comparison.source)}


CHANGE: ResultView[ComparedChange] = ResultView(
    "difference",
    "differences",
    (
        ViewField("action", "ADDED, REMOVED or CHANGED", "change.action", "ACTION"),
        ViewField("key", _KEY, "change.key", "KEY", str),
        ViewField("type", "of what it holds afterwards, or held before", _changed_type, "TYPE"),
        ViewField(
            "renamedFrom", "where the content from after stood before", "change.renamed_from", "RENAMED FROM", text_field
        ),
        ViewField(
            "renamedTo", "where the content from before stands afterwards", "change.renamed_to", "RENAMED TO", text_field
        ),
        ViewField("before", "what the key held; null: nothing", "change.before", form=_value, inside=_VALUE),
        ViewField("after", "what it holds; null: nothing", "change.after", form=_value, inside=_VALUE),
        ViewField(
            "sides",
            "what both did to it since their common ancestor; null with --brief",
            form=_both_sides,
            inside={
                **{f".before{way}": about for way, about in SIDE_FIELDS.items()},
                ".after": "the same of the other",
            },
        ),
        ViewField(
            "merge",
            "what merging the second reference into the first would do: PUT, REMOVED, CONFLICT, or LEFT (it stays as it is, for only the"
            " first has changed it); null with --brief, and where a base would have to be named",
            lambda row: None if row.merge is None else row.merge.value,
        ),
    ),
)

range_options = option_group(
    click.option("--prefix", metavar="KEY", type=KEY, help="Only what stands below this namespace, such as sales.eu."),
    click.option("--from", "start", metavar="KEY", type=KEY, help="Only this key and those after it."),
    click.option("--to", "end", metavar="KEY", type=KEY, help="Only keys before this one."),
    click.option("--limit", metavar="COUNT", type=click.IntRange(min=1), help="At most so many; default is all."),
    click.option("--after", "token", metavar="TOKEN", help="Continue a listing that printed this token, in the same state."),
)

within_option = click.option(
    "--within",
    metavar="COUNT",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Look at so many commits at most.",
)


@click.command(name="tables")
@catalog_ref_argument
@range_options
@click.option("--reverse", is_flag=True, help="Begin with the last key.")
@filter_option(EntryExpression, "keys for which this is true, such as \"entry.contentType == 'ICEBERG_VIEW'\"")
@prints(ENTRY, is_page=True)
def tables_command(
    session: CliSession,
    /,
    address: Address,
    limit: int | None,
    token: str | None,
    expression: EntryExpression | None,
    **keys: Any,
) -> None:
    """List the tables, views, namespaces and functions of a catalog, by key."""
    with opened_catalog(session, address) as opened:
        page = opened.entries(address.ref, where=expression, limit=limit, page_token=token, **keys)
        session.show_page(ENTRY, page.entries, page.next_token)
        _tell_more(session, page.next_token)
        if (
            not page.entries
            and not token
            and expression is None
            and keys["prefix"] is not None
            and keys["start"] is keys["end"] is None
        ):
            session.warn(_why_empty(opened, address.ref, keys["prefix"]))


@click.command(name="content")
@catalog_ref_argument
@click.argument("keys", metavar="KEY...", type=KEY, nargs=-1, required=True)
@click.option(
    "--metadata", is_flag=True, help="Print the metadata document of an Iceberg table or view, rebuilt with equal values."
)
@prints(CONTENT, many=True)
def content_command(session: CliSession, address: Address, keys: tuple[ContentKey, ...], metadata: bool) -> None:
    """Show all that is known of some tables, views, namespaces or functions."""
    with opened_catalog(session, address) as opened:
        contents = opened.get_contents(address.ref, keys)
        absent = [key for key in keys if key not in contents]
        if metadata and len(keys) > 1:
            raise RefusedError("--metadata prints one document: give one key")
        if metadata and not absent:
            document = opened.metadata(address.ref, keys[0])
            if document is None:
                raise NotFoundError(
                    f"no metadata document is stored with {keys[0]} of {_where(opened, address.ref)}: only where it lies,"
                    " see metadataLocation"
                )
            click.echo(document.decode())
            return
        if not metadata:
            _show_contents(session, [ContentRow(key, content) for key, content in contents.items()])
        _check_none(absent, opened, address.ref)


@click.command(name="find")
@catalog_ref_argument
@click.argument("content_ids", metavar="CONTENT_ID...", type=click.UUID, nargs=-1, required=True)
@prints(ENTRY, many=True)
def find_content_command(session: CliSession, address: Address, content_ids: tuple[UUID, ...]) -> None:
    """Show the keys of contents by their ids, which survive renames."""
    with opened_catalog(session, address) as opened:
        entries = opened.find_by_id(address.ref, content_ids)
        session.show_all(ENTRY, list(entries.values()))
        _check_none([content_id for content_id in content_ids if content_id not in entries], opened, address.ref)


@click.command(name="log")
@catalog_ref_argument
@click.option("--key", metavar="KEY", type=KEY, help="Only commits that changed this key, such as sales.orders.")
@click.option("--prefix", metavar="KEY", type=KEY, help="Only commits that changed something below this namespace.")
@click.option("--action", type=click.Choice(["PUT", "DELETE"]), help="Only commits that did this to a key.")
@click.option(
    "--type",
    "content_type",
    type=click.Choice([kind.name for kind in ContentType]),
    help="Only commits that put or deleted content of this type.",
)
@click.option("--author", metavar="NAME", help="Only commits of this author.")
@click.option("--since", type=TIME, metavar="TIME", help="Only commits made then or later; 90m is as long ago.")
@click.option("--until", type=END_TIME, metavar="TIME", help="Only commits made then or earlier.")
@click.option("--message", metavar="PATTERN", help="Only commits whose message matches this regular expression somewhere.")
@filter_option(LogExpression, "commits for which this is true, such as \"commit.properties['job'] == 'nightly'\"")
@click.option("--oldest", metavar="COMMIT", type=ID, help="End with this commit, which has to be in the history.")
@click.option("--oldest-first", is_flag=True, help="Begin where history begins, or was cut.")
@limit_option(50)
@within_option
@prints(COMMIT, many=True)
def commit_log_command(
    session: CliSession,
    /,
    address: Address,
    oldest: ObjectId | None,
    oldest_first: bool,
    limit: int,
    within: int,
    content_type: str | None,
    **filters: Any,
) -> None:
    """Show the commits that led to the present content, newest first.

    Of several filters a commit has to pass all; those of keys, actions and types are about one and the same change.
    """
    where = LogFilter(content_type=None if content_type is None else ContentType[content_type], **filters)
    with opened_catalog(session, address) as opened:
        commits = opened.log(address.ref, where=where, oldest_first=oldest_first, limit=limit, within=within, oldest=oldest)
        session.show_all(COMMIT, list(commits))
        _tell_end(session, commits, limit, within)


@click.command(name="history")
@catalog_ref_argument
@click.argument("key", metavar="KEY", type=KEY)
@limit_option(50)
@within_option
@prints(KEY_CHANGE, many=True)
def content_history_command(session: CliSession, address: Address, key: ContentKey, limit: int, within: int) -> None:
    """Show what happened to one table, view, namespace or function, newest first, back to its creation.

    It is followed through its renames, and through a drop that a restore or a merge has made good.
    """
    with opened_catalog(session, address) as opened:
        history = opened.history(key, address.ref, within=within)
        changes = list(islice(history, limit))
        if not changes and history.end is LogEnd.BEGINNING:
            raise NotFoundError(f"{key} never stood in {_where(opened, address.ref)}")
        session.show_all(KEY_CHANGE, changes)
        _tell_end(session, history, limit, within)


@click.command(name="diff")
@catalog_argument
@click.argument("before", metavar="BEFORE", type=REF, shell_complete=live_names("complete_refs"))
@click.argument("after", metavar="AFTER", type=REF, shell_complete=live_names("complete_refs"))
@range_options
@filter_option(DiffExpression, "keys for which this is true, such as \"key.namespace == 'sales.eu'\"")
@click.option("--brief", is_flag=True, help="Only which keys differ: fast, also where a million do.")
@prints(CHANGE, is_page=True)
def diff_command(
    session: CliSession,
    /,
    address: Address,
    before: str,
    after: str,
    limit: int | None,
    token: str | None,
    expression: DiffExpression | None,
    brief: bool,
    **keys: Any,
) -> None:
    """Show what differs between two references, each a branch, a tag, a commit, or a way back such as main~2.

    Below each key stands what merging the second into the first would do, and who changed it on either side since their common
    ancestor, with snapshots, rows and files, and what became of its columns. What was renamed is shown under both keys.
    """
    with opened_catalog(session, address) as opened:
        page = opened.diff(before, after, where=expression, limit=limit, page_token=token, **keys)
        if brief:
            session.show_page(CHANGE, [ComparedChange(change) for change in page.changes], page.next_token)
        else:
            first, second = (  # the compared commits, whatever the branches hold by now
                named if commit is None else id_text(commit) for named, commit in ((before, page.before), (after, page.after))
            )
            compared = opened.compare_keys(first, second, [change.key for change in page.changes])
            effects = opened.preview_merge(second, first)
            rows = [
                ComparedChange(change, sides, None if effects is None else effects.get(change.key, MergeEffect.LEFT))
                for change, sides in zip(page.changes, compared, strict=True)
            ]
            if session.output == "table" and not session.quiet and rows:
                session.print_result(None, lambda: _change_lines(rows, (before, after)))
            else:
                session.show_page(CHANGE, rows, page.next_token)
        _tell_more(session, page.next_token)


def _change_lines(rows: Sequence[ComparedChange], names: tuple[str, str]) -> list[str]:
    lines: list[str] = []
    for row in rows:
        change = row.change
        moved = f"  from {change.renamed_from}" if change.renamed_from is not None else ""
        moved += f"  to {change.renamed_to}" if change.renamed_to is not None else ""
        lines += ["", f"{change.action}  {change.key}  {_changed_type(row)}{moved}"]
        if row.merge is not None:
            lines.append(f"  {_EFFECTS[row.merge].format(*names)}")
        if row.sides is not None:
            lines += comparison_lines(row.sides, names)
    return lines[1:]


def _show_contents(session: CliSession, contents: Sequence[ContentRow]) -> None:
    """Print contents: as a list in JSON and YAML, even of one; as lines in a table."""
    if session.is_text and len(contents) == 1:
        session.show(CONTENT, contents[0])
    else:
        session.show_all(CONTENT, contents)


def _where(opened: Catalog, ref: str | None) -> str:
    return f"{opened.label} at {ref or opened.definition.default_branch}"


def _check_none(absent: Sequence[object], opened: Catalog, ref: str | None) -> None:
    if absent:
        raise NotFoundError(f"not in {_where(opened, ref)}: {', '.join(map(str, absent))}")


def _why_empty(opened: Catalog, ref: str | None, prefix: ContentKey) -> str:
    """Say why nothing is listed below a key: the namespace is empty, absent, or not a namespace."""
    content = opened.get_content(ref, prefix)
    if content is None:
        return f"there is no namespace {prefix} in {_where(opened, ref)}"
    if isinstance(content, Namespace):
        return f"namespace {prefix} of {_where(opened, ref)} is empty"
    return f"{prefix} of {_where(opened, ref)} is not a namespace: see headwater catalog content"


def _tell_more(session: CliSession, token: str | None) -> None:
    if token is not None and session.output not in ("json", "yaml"):  # there it is in the result
        session.warn(f"there are more rows: continue with --after {token}")


def _tell_end(session: CliSession, entries: CatalogLog | KeyHistory, limit: int, within: int) -> None:
    """Warn when there may be more entries than those shown."""
    if entries.end is LogEnd.CUT:
        session.warn("what is older is not there: it was collected, or stayed out of the archive that the realm was made of")
    elif entries.end is LogEnd.BOUND and entries.last is not None:
        key = f" of {entries.key}" if isinstance(entries, KeyHistory) else ""
        session.warn(f"looked at {within} commits: with @{id_text(entries.last)}~1 come those{key} before")
    elif entries.end is not LogEnd.BEGINNING and entries.end is not LogEnd.UNTIL:
        session.warn(f"there may be more than these {limit}: a higher --limit shows the rest")
