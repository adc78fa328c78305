"""The names of callers in the log of a storage."""

from __future__ import annotations

import re

import pytest

from headwater_server.storage_credentials import session_name

TAKEN = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)
"""What AWS takes."""


def test_name_of_a_principal_is_read_in_the_log() -> None:
    assert (session_name("ann", "acme"), session_name(None, "acme")) == ("ann@acme", "headwater@acme")


@pytest.mark.parametrize("caller", ["https://id.example.org|4711", "Zoë", "a b", "x" * 200, "'; drop", "a/b"])
def test_any_name_is_taken(caller: str) -> None:
    assert TAKEN.fullmatch(session_name(caller, "acme"))


def test_callers_have_names_of_their_own() -> None:
    callers = ["a b", "a/b", "a-b", "a|b", "x" * 60, "x" * 70, "x" * 71, "ä", "ö"]

    assert len({session_name(caller, "acme") for caller in callers}) == len(callers)
