"""Parameters of a query are taken by the Go type that a real server parses them as."""

from __future__ import annotations

import pytest
from probe_client import Client

pytestmark = pytest.mark.long

NUMBERS = [("limit", "list"), ("timeoutSeconds", "list"), ("timeoutSeconds", "watch"), ("gracePeriodSeconds", "delete")]


def ask(client: Client, query: str, verb: str = "list") -> tuple[int, str]:
    """The status, and the message of a refusal."""
    path = client.widgets + ("/a" if verb == "delete" else "")
    watch = "watch=true&" if verb == "watch" else ""
    answer = client.ask(
        "DELETE" if verb == "delete" else "GET", f"{path}?{watch}{query}", headers={"Accept": "application/json"}
    )
    return answer.status, answer.body.get("message", "") if answer.status != 200 else ""


@pytest.mark.parametrize("value", ["600.0", "1.5", "abc", "", "1e3", "0x10", "1_000"])
@pytest.mark.parametrize(("name", "verb"), NUMBERS)
def test_number_that_is_no_int64_is_refused(client: Client, name: str, verb: str, value: str) -> None:
    assert ask(client, f"{name}={value}", verb) == (400, f'strconv.ParseInt: parsing "{value}": invalid syntax')


def test_number_beyond_an_int64_is_out_of_range(client: Client) -> None:
    assert ask(client, f"limit={2**63}") == (400, f'strconv.ParseInt: parsing "{2**63}": value out of range')


@pytest.mark.parametrize("value", ["5", "%2B5", "-5", "007"])
def test_int64_may_have_a_sign_and_noughts(client: Client, value: str) -> None:
    assert ask(client, f"limit={value}") == (200, "")


@pytest.mark.parametrize(
    ("value", "shape"),
    [("true", "watch"), ("yes", "watch"), ("", "watch"), ("false", "list"), ("False", "list"), ("0", "list")],
)
def test_flag_is_true_unless_it_says_false(client: Client, value: str, shape: str) -> None:
    client.ask("GET", f"{client.widgets}?watch={value}&timeoutSeconds=1")
    asked = client.get(f"/_control/requests?namespace={client.namespace}&resource=widgets").body["requests"]

    assert [one["verb"] for one in asked] == [shape]


@pytest.mark.parametrize(("options", "status"), [({"gracePeriodSeconds": 1.5}, 400), ({"propagationPolicy": "Sideways"}, 422)])
def test_options_of_a_deletion_are_taken_by_their_types_too(client: Client, options: dict[str, object], status: int) -> None:
    client.make()

    assert client.delete(client.widgets + "/a", options).status == status


def test_parameter_that_nobody_knows_is_passed_over(client: Client) -> None:
    assert ask(client, "tailLines=1.5&x=600.0") == (200, "")


def test_log_takes_whole_lines(client: Client) -> None:
    client.post(client.core + "/pods", {"metadata": {"name": "p"}, "spec": {"containers": [], "nodeName": "n"}})

    assert [client.get(f"{client.core}/pods/p/log?tailLines={lines}").status for lines in ("5.0", "5")] == [400, 404]
