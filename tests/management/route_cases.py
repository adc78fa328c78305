"""One request for each route of management: a new route without one fails a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from managed_office import ManagedOffice

from headwater.access import Privilege
from headwater.store import id_text

P = Privilege
GRANT = {"privilege": "TABLE_READ_DATA", "on": "namespace:sales"}


@dataclass(frozen=True)
class RouteCase:
    """
    path          below ``/realms/acme``, with ``{task}`` for the id of its task, and ``{commit}`` for the second commit of lake
    privilege     that the caller needs; None: it needs none, or one for each thing, and what it is shown is tested by itself
    on            ``realm``, or the catalog that the privilege is enough on
    place         what the privilege is on, as the docs and refusals name it; empty: the realm or the catalog
    also          what the caller needs beside it
    """

    method: str
    path: str
    privilege: Privilege | None
    on: str = "realm"
    status: int = 200
    body: Any = None
    place: tuple[str, str] = ("", "")
    also: tuple[Privilege, ...] = ()

    @property
    def documented_place(self) -> str:
        return self.place[0] or ("the catalog" if self.path.startswith("/catalogs/") else "the realm")

    @property
    def refused_place(self) -> str:
        return self.place[1] or ("the realm" if self.on == "realm" else f"catalog {self.on}")

    def target(self, office: ManagedOffice, realm: str = "acme") -> str:
        path = self.path.replace("{task}", id_text(office.tasks["acme"])).replace("{commit}", office.lake.orders)
        return f"/realms/{realm}{path}"


_MANAGE, _GRANTS = P.SERVICE_MANAGE_ACCESS, P.CATALOG_MANAGE_ACCESS
_POLICY = "/catalogs/lake/policies"
_ROLE = "/catalogs/lake/roles/analyst"
_REFS = "/catalogs/lake/references"
_TABLE = f"{_REFS}/main/tables/sales.orders"
_MAIN = ("the reference", "reference main of catalog lake")
_DEV = ("the reference", "reference dev of catalog lake")
_ORDERS = ("the table", "table sales.orders of catalog lake")
ROUTE_CASES = {
    "getRealm": RouteCase("GET", "", _MANAGE),
    "updateRealm": RouteCase("PATCH", "", _MANAGE, body={"properties": {"team": "lake"}}),
    "listPrivileges": RouteCase("GET", "/privileges", None),
    "explainAccess": RouteCase("GET", "/access?principal=ann&privilege=TASK_READ", _MANAGE),
    "listCatalogs": RouteCase("GET", "/catalogs", None),
    "createCatalog": RouteCase(
        "POST", "/catalogs", P.CATALOG_CREATE, status=201, body={"name": "new", "baseLocation": "s3://acme/new/"}
    ),
    "getCatalog": RouteCase("GET", "/catalogs/lake", P.CATALOG_READ_PROPERTIES, "lake"),
    "updateCatalog": RouteCase(
        "PATCH", "/catalogs/lake", P.CATALOG_WRITE_PROPERTIES, "lake", body={"properties": {"owner": None}}
    ),
    "deleteCatalog": RouteCase("DELETE", "/catalogs/lake", P.CATALOG_DROP, "lake"),
    "undeleteCatalog": RouteCase("POST", "/catalogs/gone/undelete", P.CATALOG_DROP),
    "listGuests": RouteCase("GET", "/catalogs/lake/guests", P.CATALOG_MANAGE_CONTENT, "lake"),
    "adoptGuests": RouteCase(
        "POST", "/catalogs/lake/guests/adopt", P.CATALOG_MANAGE_CONTENT, "lake", status=404, body={"keys": [["missing"]]}
    ),
    "releaseLocation": RouteCase(
        "POST", "/locations/release", P.CATALOG_MANAGE_CONTENT, status=404, body={"location": "s3://acme/nobody"}
    ),
    "getCaller": RouteCase("GET", "/me", None),
    "getCallerInCatalog": RouteCase("GET", "/catalogs/lake/me", None),
    "listReferences": RouteCase("GET", _REFS, None),
    "createReference": RouteCase(
        "POST",
        _REFS,
        P.REFERENCE_CREATE,
        "lake",
        status=201,
        body={"name": "fresh"},
        place=("the new name", "reference fresh of catalog lake"),
    ),
    "getReference": RouteCase("GET", f"{_REFS}/main", None),
    "assignReference": RouteCase("PUT", f"{_REFS}/dev", P.REFERENCE_ASSIGN, "lake", body={"target": "main"}, place=_DEV),
    "deleteReference": RouteCase("DELETE", f"{_REFS}/dev", P.REFERENCE_DROP, "lake", place=_DEV),
    "undeleteReference": RouteCase(
        "POST",
        f"{_REFS}/gone/undelete",
        P.REFERENCE_DROP,
        "lake",
        place=("the reference", "reference gone of catalog lake"),
    ),
    "readLog": RouteCase("GET", f"{_REFS}/main/log", P.REFERENCE_READ_HISTORY, "lake", place=_MAIN),
    "getCommit": RouteCase("GET", f"{_REFS}/main/commits/{{commit}}", P.REFERENCE_READ_HISTORY, "lake", place=_MAIN),
    "readCommitGraph": RouteCase("GET", "/catalogs/lake/graph", None),
    "listEntries": RouteCase("GET", f"{_REFS}/main/entries", None),
    "searchEntries": RouteCase("GET", f"{_REFS}/main/search?q=sales", None),
    "listDifferences": RouteCase(
        "GET", "/catalogs/lake/diff?before=main&after=main~1", P.REFERENCE_READ_HISTORY, "lake", place=_MAIN
    ),
    "mergeIntoBranch": RouteCase("POST", f"{_REFS}/main/merge", None, body={"source": "dev"}),
    "transplantOntoBranch": RouteCase(
        "POST", f"{_REFS}/main/transplant", None, body={"source": "dev", "commits": ["00000000000000ff"]}, status=404
    ),
    "getTable": RouteCase("GET", _TABLE, P.TABLE_READ_PROPERTIES, "lake", place=_ORDERS),
    "listSnapshots": RouteCase("GET", f"{_TABLE}/snapshots", P.TABLE_READ_PROPERTIES, "lake", place=_ORDERS),
    "readTableHistory": RouteCase(
        "GET", f"{_TABLE}/history", P.REFERENCE_READ_HISTORY, "lake", place=_MAIN, also=(P.TABLE_READ_PROPERTIES,)
    ),
    "readSnapshotFiles": RouteCase("GET", f"{_TABLE}/files", P.TABLE_READ_DATA, "lake", place=_ORDERS),
    "listUnreferencedFiles": RouteCase("GET", "/catalogs/lake/files", P.CATALOG_MANAGE_CONTENT, "lake", status=404),
    "getFileReport": RouteCase("GET", "/catalogs/lake/files/report", P.CATALOG_MANAGE_CONTENT, "lake", status=404),
    "explainFile": RouteCase(
        "GET", "/catalogs/lake/files/explain?url=s3://elsewhere/a", P.CATALOG_MANAGE_CONTENT, "lake", status=400
    ),
    "listPolicies": RouteCase("GET", _POLICY, P.CATALOG_MANAGE_METADATA, "lake"),
    "getPolicy": RouteCase("GET", f"{_POLICY}/snapshots", P.CATALOG_MANAGE_METADATA, "lake", status=404),
    "putPolicy": RouteCase(
        "PUT", f"{_POLICY}/file-collection", P.CATALOG_MANAGE_CONTENT, "lake", body={"fileCollection": {"mode": "off"}}
    ),
    "deletePolicy": RouteCase("DELETE", f"{_POLICY}/metadata-files", P.CATALOG_MANAGE_CONTENT, "lake", status=404),
    "getEffectivePolicies": RouteCase("GET", "/catalogs/lake/effective-policies", P.CATALOG_MANAGE_METADATA, "lake"),
    "listPrincipals": RouteCase("GET", "/principals", _MANAGE),
    "createPrincipal": RouteCase("POST", "/principals", _MANAGE, status=201, body={"name": "etl"}),
    "getPrincipal": RouteCase("GET", "/principals/ann", _MANAGE),
    "deletePrincipal": RouteCase("DELETE", "/principals/ann", _MANAGE, status=204),
    "rotateCredentials": RouteCase("POST", "/principals/ann/rotate?overlapSeconds=60", _MANAGE),
    "resetCredentials": RouteCase("POST", "/principals/ann/reset", _MANAGE),
    "disablePrincipal": RouteCase("POST", "/principals/ann/disable", _MANAGE),
    "enablePrincipal": RouteCase("POST", "/principals/ann/enable", _MANAGE),
    "listPrincipalRoles": RouteCase("GET", "/principal-roles", _MANAGE),
    "createPrincipalRole": RouteCase("POST", "/principal-roles", _MANAGE, status=201, body={"name": "writers"}),
    "getPrincipalRole": RouteCase("GET", "/principal-roles/readers", _MANAGE),
    "deletePrincipalRole": RouteCase("DELETE", "/principal-roles/readers", _MANAGE, status=204),
    "assignPrincipalRole": RouteCase("PUT", "/principal-roles/service_admin/principals/ann", _MANAGE, status=204),
    "withdrawPrincipalRole": RouteCase("DELETE", "/principal-roles/readers/principals/ann", _MANAGE, status=204),
    "grantOnRealm": RouteCase("PUT", "/principal-roles/readers/privileges/CATALOG_LIST", _MANAGE, status=204),
    "revokeOnRealm": RouteCase("DELETE", "/principal-roles/readers/privileges/TASK_READ", _MANAGE, status=204),
    "listCatalogRoles": RouteCase("GET", "/catalogs/lake/roles", _GRANTS, "lake"),
    "createCatalogRole": RouteCase("POST", "/catalogs/lake/roles", _GRANTS, "lake", status=201, body={"name": "loader"}),
    "getCatalogRole": RouteCase("GET", _ROLE, _GRANTS, "lake"),
    "deleteCatalogRole": RouteCase("DELETE", _ROLE, _GRANTS, "lake", status=204),
    "listGrants": RouteCase("GET", f"{_ROLE}/grants", _GRANTS, "lake"),
    "addGrants": RouteCase("POST", f"{_ROLE}/grants", _GRANTS, "lake", status=204, body={"grants": [GRANT]}),
    "revokeGrants": RouteCase("POST", f"{_ROLE}/grants/revoke", _GRANTS, "lake", body={"grants": [GRANT]}),
    "assignCatalogRole": RouteCase("PUT", f"{_ROLE}/principal-roles/service_admin", _GRANTS, "lake", status=204),
    "withdrawCatalogRole": RouteCase("DELETE", f"{_ROLE}/principal-roles/readers", _GRANTS, "lake", status=204),
    "listTasks": RouteCase("GET", "/tasks", P.TASK_READ),
    "submitTask": RouteCase("POST", "/tasks", P.TASK_MANAGE, body={"kind": "gc"}),
    "getTask": RouteCase("GET", "/tasks/{task}", P.TASK_READ),
    "cancelTask": RouteCase("POST", "/tasks/{task}/cancel", P.TASK_MANAGE),
    "retryTask": RouteCase("POST", "/tasks/{task}/retry", P.TASK_MANAGE, status=400),
    "runTaskNow": RouteCase("POST", "/tasks/{task}/run-now", P.TASK_MANAGE),
    "listStops": RouteCase("GET", "/maintenance", P.TASK_READ),
    "stopMaintenance": RouteCase("POST", "/maintenance/stop", P.TASK_MANAGE, body={"reason": "an audit"}),
    "resumeMaintenance": RouteCase("POST", "/maintenance/resume", P.TASK_MANAGE, body={}),
    "listRuns": RouteCase("GET", "/runs", P.TASK_READ),
    "getRun": RouteCase("GET", "/runs/{task}-1", P.TASK_READ),
    "getRunReport": RouteCase("GET", "/runs/{task}-1/report", P.TASK_READ),
}
