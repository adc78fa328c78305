"""Where catalogs may be put over HTTP: in the places that the store's owner gave to the realm, and nowhere else."""

from __future__ import annotations

import pytest
from managed_office import ManagedOffice


@pytest.mark.parametrize("place", ["s3://acme/", "s3://acme/deep/er", "s3a://acme/x", "s3://shared/acme/new"])
def test_catalog_is_made_in_a_place_of_its_realm(office: ManagedOffice, place: str) -> None:
    answer = office.call("POST", "/realms/acme/catalogs", {"name": "new", "baseLocation": place}, token=office.token("root"))

    assert answer.status == 201, answer.content


@pytest.mark.parametrize(
    "place",
    [
        "s3://rival/",
        "s3://acme-2/",
        "s3://shared/acmes",
        "s3://acme/../rival",
        "s3://acme/%2e%2e/rival",
        "s3://acme/a%2fb",
        "s3://acme/a\\..\\b",
        "s3://acme/a\u0007b",
        "s3://acme/a//b",
        "s3://shared/",
        "file:///etc",
    ],
)
def test_catalog_is_made_in_no_place_of_another(office: ManagedOffice, place: str) -> None:
    token = office.token("root")
    wish = {"name": "new", "baseLocation": place}
    beside = {"name": "new", "baseLocation": "s3://acme/new", "allowedLocations": [place]}
    answers = [office.call("POST", "/realms/acme/catalogs", body, token=token) for body in (wish, beside)]
    answers.append(office.call("PATCH", "/realms/acme/catalogs/lake", {"allowedLocations": [place]}, token=token))

    assert [answer.status for answer in answers] == [400, 400, 400]
    assert office.catalogs().find_catalog("new") is None


def test_realm_gives_itself_no_places(office: ManagedOffice) -> None:
    token = office.token("root")
    for value in ("s3://rival/", None):
        answer = office.call("PATCH", "/realms/acme", {"properties": {"catalog-locations": value}}, token=token)
        assert (answer.status, "set by whoever administers the store" in answer.message) == (400, True)

    assert office.call("PATCH", "/realms/acme", {"properties": {"team": "lake"}}, token=token).status == 200


def test_catalog_that_is_there_lends_its_name_to_no_other_place(office: ManagedOffice) -> None:
    token = office.token("root")
    wish = {"name": "lake", "baseLocation": "s3://rival/", "properties": {"owner": "keeper of lake"}}

    assert office.call("POST", "/realms/acme/catalogs", wish, token=token).status == 400
    office.catalogs().update_catalog(office.catalogs().read_catalog("lake"), base_location="s3://elsewhere/lake/")
    again = {**wish, "baseLocation": "s3://elsewhere/lake/"}
    assert office.call("POST", "/realms/acme/catalogs", again, token=token).status == 200
