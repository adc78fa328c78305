"""``kubectl headwater status``: one page on a realm, or a table of all."""

from __future__ import annotations

from typing import Any

import click

from headwater_operator.kube import resource_path
from headwater_operator.plugin.cluster_session import REALM, ClusterSession, CommandTarget, realm_name_of
from headwater_operator.plugin.kubectl_options import cluster_options, output_option
from headwater_operator.plugin.realm_page import page_lines, realm_page, realm_row, row_lines

FINDINGS = 8


@click.command(name="status")
@click.argument("realm", metavar="[REALM]", type=REALM, required=False)
@click.option("-A", "--all-namespaces", is_flag=True, help="Without REALM: those of every namespace.")
@cluster_options
@output_option
@click.pass_obj
def status_command(session: ClusterSession, realm: CommandTarget | None, all_namespaces: bool) -> int:
    """Show one page on a realm, or a table of all realms. Ends with 8 when something is not as it should be."""
    if realm is None:
        return _show_all(session, all_namespaces)
    found, now = session.read_resource(realm), session.current_time()
    catalogs = catalogs_of(session, realm.name)
    page = realm_page(found, catalogs, _events_of(session, [found, *catalogs]), now)
    session.show(page, lambda: page_lines(page, now))
    return FINDINGS if page["findings"] else 0


def catalogs_of(session: ClusterSession, realm: str) -> list[dict[str, Any]]:
    """The Catalogs that name this Realm resource."""
    found = session.api.list_resources(resource_path("Catalog", session.namespace, None))
    return [catalog for catalog in found if realm_name_of(catalog) == realm]


def _show_all(session: ClusterSession, all_namespaces: bool) -> int:
    now = session.current_time()
    found = session.api.list_resources(resource_path("Realm", None if all_namespaces else session.namespace, None))
    rows = sorted(map(realm_row, found), key=lambda row: (row["namespace"], row["name"]))
    session.show(rows, lambda: row_lines(rows, now, with_namespace=all_namespaces))
    return FINDINGS if any(row["findings"] for row in rows) else 0


def _events_of(session: ClusterSession, resources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events about these very resources, without those of earlier resources with the same names."""
    uids = {resource["metadata"]["uid"] for resource in resources}
    found = session.api.list_resources(resource_path("Event", session.namespace, None))
    return [event for event in found if (event.get("involvedObject") or {}).get("uid") in uids]
