"""Each route of management, by a caller with exactly the right that it needs, by one with all others, and by strangers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from managed_office import FRESH_SECONDS, ManagedOffice
from route_cases import ROUTE_CASES, RouteCase

from headwater.access import INCLUDED, PRIVILEGES, Privilege, SecurableKind
from headwater.catalogs import CatalogGrant
from headwater.realms import disable_principal, read_principal
from headwater_server.management import management_table
from headwater_server.route_table import Route
from headwater_server.server_tables import server_tables

JUDGED = [case for case in ROUTE_CASES.values() if case.privilege is not None]
ALL = pytest.mark.parametrize("case", ROUTE_CASES.values(), ids=ROUTE_CASES)
UNDER_RIGHT = pytest.mark.parametrize("case", JUDGED, ids=[name for name, case in ROUTE_CASES.items() if case in JUDGED])
NEEDS_NO_RIGHT = {"listPrivileges", "listCatalogs", "getCaller", "getCallerInCatalog"}
JUDGES_EACH_THING = {
    "listReferences",
    "getReference",
    "readCommitGraph",
    "listEntries",
    "searchEntries",
    "mergeIntoBranch",
    "transplantOntoBranch",
}
"""They have tests of their own, in ``test_contents_rights``."""


@pytest.fixture
def office(office: ManagedOffice) -> ManagedOffice:
    return office.stock()


@pytest.fixture
def open_office(open_office: ManagedOffice) -> ManagedOffice:
    return open_office.stock()


@pytest.fixture(scope="module")
def calm_office(calm_office: ManagedOffice) -> ManagedOffice:
    return calm_office.stock()


def ask(office: ManagedOffice, case: RouteCase, token: str | None, *, realm: str = "acme") -> Any:
    return office.call(case.method, case.target(office, realm), case.body, token=token)


class Strangers:
    """Callers who may not: with all rights but one, of another realm, and disabled."""

    def __init__(self, office: ManagedOffice) -> None:
        self._office = office
        self._tokens: dict[Privilege, str] = {}
        self.of_another_realm = office.token("root", "rival")
        self.disabled = office.make_holder("disabled", Privilege.SERVICE_MANAGE_ACCESS)
        disable_principal(office.registry, "acme", "disabled")
        office.clock.advance(FRESH_SECONDS)

    def without(self, needed: Privilege) -> str:
        """The token of a caller with every right, on the realm and on lake, that does not include the needed one."""
        if needed not in self._tokens:
            others = [privilege for privilege in Privilege if needed not in INCLUDED[privilege]]
            on_realm = [each for each in others if SecurableKind.REALM in PRIVILEGES[each].kinds]
            on_lake = [CatalogGrant(privilege=each) for each in others if SecurableKind.CATALOG in PRIVILEGES[each].kinds]
            self._tokens[needed] = self._office.make_holder(f"no-{needed}", *on_realm, lake=tuple(on_lake))
        return self._tokens[needed]


def everything(office: ManagedOffice) -> list[Any]:
    """What acme has, as its root reads it."""
    token = office.token("root")
    paths = ("", "/catalogs", "/catalogs?deleted=true", "/catalogs/lake", "/principals", "/principal-roles", "/tasks")
    paths += (
        "/principal-roles/readers",
        "/catalogs/lake/roles",
        "/catalogs/lake/roles/analyst/grants",
        "/catalogs/lake/policies",
        "/catalogs/lake/references",
        "/catalogs/lake/references?deleted=true",
    )
    answers = [office.call("GET", f"/realms/acme{path}", token=token) for path in paths]
    assert {answer.status for answer in answers} == {200}
    return [answer.data for answer in answers]


def test_every_route_has_a_case() -> None:
    assert set(ROUTE_CASES) == {route.name for route in management_table().routes} - {"getServerConfig", "listRealms"}
    assert {name for name, case in ROUTE_CASES.items() if case.privilege is None} == NEEDS_NO_RIGHT | JUDGES_EACH_THING


@pytest.mark.parametrize("name", ROUTE_CASES)
def test_route_says_which_right_it_needs(name: str) -> None:
    [route], case = [route for route in management_table().routes if route.name == name], ROUTE_CASES[name]

    if case.privilege is not None:
        assert route.needs.startswith(f"{case.privilege} on {case.documented_place}")
    assert route.needs


@UNDER_RIGHT
def test_right_that_is_needed_is_enough(office: ManagedOffice, case: RouteCase) -> None:
    assert case.privilege is not None
    if case.on == "realm":
        token = office.make_holder("holder", case.privilege)
    else:
        grants = tuple(CatalogGrant(privilege=each.value) for each in (case.privilege, *case.also))
        token = office.make_holder("holder", lake=grants)

    assert ask(office, case, token).status == case.status


@pytest.fixture(scope="module")
def strangers(calm_office: ManagedOffice) -> Strangers:
    return Strangers(calm_office)


@UNDER_RIGHT
def test_all_other_rights_are_not_enough(calm_office: ManagedOffice, strangers: Strangers, case: RouteCase) -> None:
    assert case.privilege is not None
    token, before = strangers.without(case.privilege), everything(calm_office)
    answer = ask(calm_office, case, token)

    if case.path.startswith("/catalogs/gone"):  # it is told as missing: nobody without the right may know what was deleted
        assert answer.error == (404, "NotFoundException")
    else:
        assert answer.error == (403, "ForbiddenException")
        assert re.match(
            f"this needs {case.privilege} on {case.refused_place}( on [a-z]+)?, which was not granted", answer.message
        )
    assert everything(calm_office) == before


@ALL
def test_stranger_is_refused(calm_office: ManagedOffice, strangers: Strangers, case: RouteCase) -> None:
    before = everything(calm_office)
    answers = [ask(calm_office, case, token) for token in (None, "nonsense", strangers.of_another_realm, strangers.disabled)]

    assert {answer.error for answer in answers} == {(401, "NotAuthorizedException")}
    assert all("Bearer" in answer.headers["www-authenticate"] for answer in answers)
    assert everything(calm_office) == before
    assert calm_office.call("GET", "/realms/rival", token=strangers.of_another_realm).status == 200


@ALL
def test_everything_is_allowed_where_nobody_is_asked(open_office: ManagedOffice, case: RouteCase) -> None:
    assert ask(open_office, case, None).status == case.status
    assert ask(open_office, case, None, realm="nowhere").error[0] == 404


def test_list_of_realms_names_no_realm(office: ManagedOffice, open_office: ManagedOffice, root: str) -> None:
    assert office.call("GET", "/realms", token=root).error == (403, "ForbiddenException")
    assert [realm["id"] for realm in open_office.call("GET", "/realms").data["realms"]] == ["acme", "rival"]


@pytest.mark.parametrize("route", [route for table in server_tables() for route in table.routes], ids=lambda route: route.name)
def test_route_of_any_table_is_judged_or_open_or_refused(calm_office: ManagedOffice, route: Route) -> None:
    if route.realm_of is None and not route.is_open:
        answer = calm_office.call(route.method, route.template, token=calm_office.token("root"))
        assert answer.error == (403, "ForbiddenException") and "administers the store" in answer.message
    assert not route.is_open or route.name in ("getServerConfig", "getToken")
    assert route.realm_of is not None or route.name in ("getServerConfig", "getToken", "listRealms")


def test_principal_reads_itself_and_nobody_else(office: ManagedOffice) -> None:
    token = office.token("ann")

    assert office.call("GET", "/realms/acme/principals/ann", token=token).data["roles"] == ["readers"]
    assert office.call("GET", "/realms/acme/principals/root", token=token).status == 403
    assert office.call("GET", "/realms/acme/principals/nobody", token=token).status == 403


def test_principal_rotates_its_own_credentials(office: ManagedOffice) -> None:
    answer = office.call("POST", "/realms/acme/principals/ann/rotate?overlapSeconds=60", token=office.token("ann"))
    credentials = answer.data["credentials"]

    assert office.log_in(credentials["clientId"], credentials["clientSecret"]).status == 200
    assert office.call("POST", "/realms/acme/principals/root/rotate", token=office.token("ann")).status == 403
    assert office.call("POST", "/realms/acme/principals/ann/reset", token=office.token("ann")).status == 403


def test_restricted_token_rotates_no_credentials(office: ManagedOffice) -> None:
    token = office.token("ann", roles=frozenset({"readers"}))
    before = read_principal(office.registry, "acme", "ann")

    assert office.call("POST", "/realms/acme/principals/ann/rotate", token=token).status == 403
    assert read_principal(office.registry, "acme", "ann") == before


def test_manager_of_a_catalog_manages_no_principals(office: ManagedOffice) -> None:
    manager = office.make_holder("manager", Privilege.CATALOG_MANAGE_ACCESS, Privilege.CATALOG_MANAGE_CONTENT)
    escapes = (
        ("PUT", "/principal-roles/service_admin/principals/manager", None),
        ("PUT", "/principal-roles/role-of-manager/privileges/SERVICE_MANAGE_ACCESS", None),
        ("POST", "/principals/root/reset", None),
        ("POST", "/catalogs", {"name": "mine", "baseLocation": "s3://rival/"}),
        ("PATCH", "/catalogs/lake", {"allowedLocations": ["s3://rival/"]}),
    )

    assert [office.call(method, f"/realms/acme{path}", body, token=manager).status for method, path, body in escapes] == [
        403
    ] * 5


@pytest.mark.parametrize("privilege", ["SERVICE_MANAGE_ACCESS", "CATALOG_CREATE", "TASK_MANAGE"])
def test_catalog_role_gets_no_right_on_the_realm(office: ManagedOffice, root: str, privilege: str) -> None:
    answer = office.call(
        "POST", "/realms/acme/catalogs/lake/roles/analyst/grants", {"grants": [{"privilege": privilege}]}, token=root
    )

    assert answer.status == 400 and answer.message.startswith(f"grants[0]: {privilege} cannot be granted on a catalog")


def test_default_branch_is_changed_by_who_manages_grants(office: ManagedOffice, root: str) -> None:
    office.catalogs().open_catalog("lake").create_branch("release")
    writer = office.make_holder("writer", lake=(CatalogGrant(privilege="CATALOG_MANAGE_METADATA"),))
    patch = {"defaultBranch": "release"}

    assert office.call("PATCH", "/realms/acme/catalogs/lake", patch, token=writer).status == 403
    assert office.call("PATCH", "/realms/acme/catalogs/lake", patch, token=root).data["defaultBranch"] == "release"


def test_root_and_its_role_stay(office: ManagedOffice, root: str) -> None:
    paths = ("/principals/root", "/principal-roles/service_admin")
    paths += ("/principal-roles/service_admin/privileges/SERVICE_MANAGE_ACCESS",)

    assert [office.call("DELETE", f"/realms/acme{path}", token=root).status for path in paths] == [400, 400, 400]


def test_former_credentials_of_a_rotation_renew_nothing(office: ManagedOffice) -> None:
    former = office.token("ann")
    path = "/realms/acme/principals/ann"
    assert office.call("POST", f"{path}/rotate?overlapSeconds=60", token=office.token("root")).status == 200
    office.clock.advance(FRESH_SECONDS)

    assert office.call("GET", path, token=former).status == 200
    assert office.call("POST", f"{path}/rotate", token=former).error == (403, "ForbiddenException")
    assert office.call("POST", f"{path}/rotate", token=office.token("ann")).status == 200
