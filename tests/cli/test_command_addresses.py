"""How commands are told what they are about: ``REALM/CATALOG@REF`` in one word."""

from __future__ import annotations

import pytest
from commandline import CommandLine

from headwater.cli.command_address import CATALOG, CATALOG_REF, FILE_TABLE, SCOPE_REF, Address, AddressForm
from headwater.errors import RefusedError


@pytest.mark.parametrize(
    ("form", "text", "address"),
    [
        (CATALOG, "acme/lake", Address("acme", "lake")),
        (CATALOG_REF, "acme/lake", Address("acme", "lake")),
        (CATALOG_REF, "acme/lake@etl/nightly", Address("acme", "lake", "etl/nightly")),
        (CATALOG_REF, "acme/lake@main@0123456789abcdef~2", Address("acme", "lake", "main@0123456789abcdef~2")),
        (SCOPE_REF, "acme", Address("acme")),
        (SCOPE_REF, "acme/lake@dev", Address("acme", "lake", "dev")),
        (FILE_TABLE, "acme/orders", Address("acme", "orders")),
    ],
)
def test_address_is_read_and_told_alike(form: AddressForm, text: str, address: Address) -> None:
    assert form.parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    ("form", "text", "told"),
    [
        (CATALOG, "acme", "'acme' names a realm and no catalog: write REALM/CATALOG, such as acme/lake"),
        (FILE_TABLE, "acme", "'acme' names a realm and no file table: write REALM/TABLE, such as acme/events"),
        (CATALOG, "acme/", "'acme/' is no address: write REALM/CATALOG"),
        (CATALOG, "acme/lake/dev", "'acme/lake/dev' is no address: write REALM/CATALOG"),
        (CATALOG, "", "'' is no address: write REALM/CATALOG"),
        (CATALOG, "acme/lake@dev", "'acme/lake@dev' names a reference, which this command does not take: write REALM/CATALOG"),
        (CATALOG_REF, "acme/lake@", "'acme/lake@' names no reference after its @: leave the @ out for the default branch"),
        (SCOPE_REF, "acme@dev", "'acme@dev' names a reference of no catalog: write REALM[/CATALOG[@REF]]"),
    ],
)
def test_address_of_another_form_says_the_right_one(form: AddressForm, text: str, told: str) -> None:
    with pytest.raises(RefusedError) as refused:
        form.parse_address(text)

    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("catalog show acme lake", "realm and catalog are one argument: write acme/lake"),
        ("catalog merge acme lake dev --dry-run", "realm and catalog are one argument: write acme/lake"),
        ("catalog content acme lake sales.orders", "realm and catalog are one argument: write acme/lake"),
        ("file-table show acme orders", "realm and file table are one argument: write acme/orders"),
        ("catalog show acme", "write REALM/CATALOG, such as acme/lake"),
    ],
)
def test_two_words_are_told_to_be_one(headwater: CommandLine, line: str, told: str) -> None:
    refused = headwater(*line.split())

    assert (refused.exit_code, told in refused.stderr) == (2, True), refused.stderr
