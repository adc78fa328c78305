"""``headwater policy``: how much of their lake a catalog's tables keep, and what that comes to for one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from headwater.api.catalog_policies import put_policy, unknown_words
from headwater.catalogs import Catalog, ContentKey
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import Address, catalog_branch_argument, catalog_ref_argument
from headwater.cli.command_options import KEY, author_option
from headwater.console import DURATION, ResultView, ViewField, prints, text_field, time_field
from headwater.errors import NotFoundError
from headwater.policies import (
    PolicyKind,
    StoredPolicy,
    TablePolicies,
    find_policy,
    find_policy_table,
    list_policies,
    policy_form,
    policy_text,
    read_table_policies,
    unset_policy,
    unset_snapshot_rule,
)
from headwater.realms import RealmRegistry
from headwater.store import RealmStore


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy, and the key of its table on the reference that was asked for; None: it is the catalog's, or its table is not there."""

    policy: StoredPolicy
    key: ContentKey | None


def _of(row: PolicyRow) -> str:
    if row.policy.content_id is None:
        return "the catalog"
    return f"table {row.key or row.policy.content_id}"


def _said(field: str) -> Any:
    return lambda row: policy_form(row.policy).get(field)


POLICY: ResultView[PolicyRow] = ResultView(
    "policy",
    "policies",
    (
        ViewField("kind", "snapshots, metadata-files or file-collection", "policy.kind", "KIND", str),
        ViewField("of", "the catalog or one of its tables", _of, "OF"),
        ViewField("contentId", "of the table; null: the policy is the catalog's", "policy.contentId", form=text_field),
        ViewField("says", "in one line", lambda row: policy_text(row.policy), "SAYS"),
        ViewField(
            "snapshots",
            "the rules of such a policy, of which the first counts that covers a branch",
            _said("snapshots"),
            inside={
                "[].branches": "a pattern of branch names, with * for any text",
                "[].maxAge": "snapshots that are younger stay",
                "[].minToKeep": "so many of each of a table's own branches stay",
                "[].maxRefAge": "a table's own branches and tags whose snapshot is older go",
            },
        ),
        ViewField(
            "metadataFiles",
            "what a table's log of metadata files keeps",
            _said("metadataFiles"),
            inside={".keep": "so many stay", ".maxAge": "older ones go"},
        ),
        ViewField(
            "fileCollection",
            "how files that nobody refers to are treated",
            _said("fileCollection"),
            inside={
                ".grace": "from the first listing as such a file on",
                ".delay": "between grace and plan",
                ".hold": "how long a deleted file can be restored",
                ".mode": "off or report",
            },
        ),
        ViewField("declared", "it comes from the catalog's resource", "policy.declared", "DECLARED"),
        ViewField("by", "who said it", "policy.by", "BY"),
        ViewField("updated", "when", "policy.updated", "UPDATED", time_field),
    ),
)


def _values(held: TablePolicies) -> list[dict[str, str | None]]:
    return [
        {"kind": str(each.kind), "ref": each.ref, "name": each.name, "value": each.value, "source": each.source}
        for each in held.values
    ]


EFFECTIVE: ResultView[TablePolicies] = ResultView(
    "effective policies",
    "effective policies",
    (
        ViewField("branch", "the catalog's branch"),
        ViewField("key", "of the table; null: what holds where a table says nothing itself", form=text_field),
        ViewField("contentId", "of the table", form=text_field),
        ViewField("notes", "why something else happens all the same", form=list),
        ViewField(
            "values",
            "what holds",
            _values,
            inside={
                "[].kind": "the kind of policy",
                "[].ref": "the table's own branch or tag; null: the table",
                "[].name": "as in a policy",
                "[].value": "null: nothing goes by it",
                "[].source": "a policy, a property of the table, the limit of the branch or tag itself, or a default",
            },
        ),
    ),
)

policy = click.Group(
    "policy", help="Say how much of their lake tables keep, and show what that comes to. Deletes nothing itself."
)
kind_argument = click.argument(
    "kind",
    metavar="KIND",
    type=click.Choice([kind.value for kind in PolicyKind]),
    callback=lambda ctx, parameter, kind: PolicyKind(kind),
)
table_option = click.option(
    "--table", "key", metavar="KEY", type=KEY, help="The policy of this table, which stands before its catalog's."
)


@contextmanager
def _opened(session: CliSession, address: Address) -> Iterator[tuple[RealmStore, Catalog]]:
    with session.open_store() as store:
        rows = RealmRegistry(store).open_realm(address.realm)
        yield rows, Catalog.open(rows, address.name)


@policy.command(name="set")
@catalog_ref_argument
@kind_argument
@table_option
@click.option(
    "--branch", metavar="PATTERN", help="snapshots: the branches of the catalog, such as etl/*; default is * for all."
)
@click.option("--max-age", type=DURATION, metavar="DURATION", help="snapshots, metadata-files: younger ones stay, such as 5d.")
@click.option("--min-to-keep", type=int, metavar="COUNT", help="snapshots: so many of each of a table's own branches stay.")
@click.option("--max-ref-age", type=DURATION, metavar="DURATION", help="snapshots: a table's older branches and tags go.")
@click.option("--keep", type=int, metavar="COUNT", help="metadata-files: so many stay in a table's log.")
@click.option("--grace", type=DURATION, metavar="DURATION", help="file-collection: from the first listing on; at least 1d.")
@click.option("--delay", type=DURATION, metavar="DURATION", help="file-collection: between the grace and the first plan.")
@click.option("--hold", type=DURATION, metavar="DURATION", help="file-collection: how long a deleted file can be restored.")
@click.option("--mode", type=click.Choice(["off", "report"]), help="file-collection: whether files are looked at.")
@author_option
@prints(POLICY)
def set_policy_command(
    session: CliSession,
    /,
    address: Address,
    kind: PolicyKind,
    key: ContentKey | None,
    author: str | None,
    **said: Any,
) -> None:
    """Set a policy of a catalog or of a table: KIND is snapshots, metadata-files or file-collection.

    It replaces the one before; of snapshots, the rule for the same branches. A new rule stands before that for all branches. What is not
    given, the policy does not say: then the catalog's policy, the table's properties or a default decide.
    """
    given = {field: value for field, value in said.items() if value is not None}
    _check_options(kind, given)
    with _opened(session, address) as (rows, catalog):
        content_id = None if key is None else find_policy_table(catalog, key, ref=address.ref)
        before = find_policy(rows, catalog.definition.id, kind, content_id)
        stored = put_policy(rows, catalog, kind, content_id, given, session.author(author))
        session.show_done(POLICY, PolicyRow(stored, key), f"policy {kind} of {_whose(address, key)} is set")
    _warn_of_declared(session, before)


def _whose(address: Address, key: ContentKey | None) -> str:
    return f"catalog {address.without_ref}" if key is None else f"table {key} of catalog {address.without_ref}"


@policy.command(name="unset")
@catalog_ref_argument
@kind_argument
@table_option
@click.option("--branch", metavar="PATTERN", help="snapshots: only the rule for these branches.")
@author_option
@prints(POLICY, many=True)
def unset_policy_command(
    session: CliSession,
    address: Address,
    kind: PolicyKind,
    key: ContentKey | None,
    branch: str | None,
    author: str | None,
) -> None:
    """Remove a policy, or one of its rules; what is left of it is shown.

    Afterwards another policy, the table's properties or a default decide.
    """
    _check_options(kind, {} if branch is None else {"branch": branch})
    with _opened(session, address) as (rows, catalog):
        content_id = None if key is None else find_policy_table(catalog, key, ref=address.ref)
        before, left = find_policy(rows, catalog.definition.id, kind, content_id), None
        if branch is None:
            unset_policy(rows, catalog.definition, kind, content_id)
        else:
            left = unset_snapshot_rule(rows, catalog.definition, branch, content_id=content_id, by=session.author(author))
        what = f"policy {kind}" if branch is None else f"the rule for branches {branch} of policy {kind}"
        rest = [] if left is None else [PolicyRow(left, key)]
        session.show_changes(POLICY, rest, f"{what} of {_whose(address, key)} is removed")
    _warn_of_declared(session, before)


@policy.command(name="show")
@catalog_ref_argument
@kind_argument
@table_option
@prints(POLICY)
def show_policy_command(session: CliSession, address: Address, kind: PolicyKind, key: ContentKey | None) -> None:
    """Show one policy of a catalog or of a table."""
    with _opened(session, address) as (rows, catalog):
        content_id = None if key is None else find_policy_table(catalog, key, ref=address.ref)
        found = find_policy(rows, catalog.definition.id, kind, content_id)
        if found is None:
            whose = catalog.label if key is None else f"table {key} of {catalog.label}"
            raise NotFoundError(f"{whose} has no policy {kind}")
        session.show(POLICY, PolicyRow(found, key))


@policy.command(name="list")
@catalog_ref_argument
@prints(POLICY, many=True)
def list_policies_command(session: CliSession, address: Address) -> None:
    """List the policies of a catalog and of its tables. A table that is not on the reference is named by its content id."""
    with _opened(session, address) as (rows, catalog):
        session.show_all(POLICY, _rows(catalog, list_policies(rows, catalog.definition.id), address.ref))


@policy.command(name="effective")
@catalog_branch_argument
@click.argument("key", metavar="[KEY]", type=KEY, required=False)
@prints(EFFECTIVE)
def effective_policies_command(session: CliSession, address: Address, key: ContentKey | None) -> None:
    """Show what holds for a table on a branch, and where each value comes from: also for its own branches and tags.

    Without KEY, what holds for a table that says nothing itself.
    """
    with _opened(session, address) as (rows, catalog):
        session.show(EFFECTIVE, read_table_policies(rows, catalog, key, branch=address.ref))


def _check_options(kind: PolicyKind, given: Mapping[str, Any]) -> None:
    wrong, words = unknown_words(kind, given)
    if wrong:
        known = ", ".join(f"--{name.replace('_', '-')}" for name in words)
        raise click.UsageError(f"a policy {kind} has no --{wrong[0].replace('_', '-')}: it has {known}")


def _rows(catalog: Catalog, policies: Sequence[StoredPolicy], ref: str | None) -> list[PolicyRow]:
    ids = [policy.content_id for policy in policies if policy.content_id is not None]
    entries = catalog.find_by_id(ref, dict.fromkeys(ids))
    found = {content_id: entry.key for content_id, entry in entries.items()}
    return [PolicyRow(each, None if each.content_id is None else found.get(each.content_id)) for each in policies]


def _warn_of_declared(session: CliSession, before: StoredPolicy | None) -> None:
    if before is not None and before.declared:
        session.warn("the catalog's resource declares this policy: it is put back when that is applied again")
