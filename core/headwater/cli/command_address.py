"""How commands are told what they are about: a realm and what is in it, in one word, such as ``acme/lake@dev``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from headwater.catalogs import parse_revspec
from headwater.errors import RefusedError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Address:
    """What a command is about.

    name          the catalog or file table; empty: the realm itself
    ref           a branch, a tag or a commit of the catalog; None: its default branch
    """

    realm: str
    name: str = ""
    ref: str | None = None

    @property
    def without_ref(self) -> str:
        """The address without the reference."""
        return f"{self.realm}/{self.name}" if self.name else self.realm

    def __str__(self) -> str:
        return self.without_ref if self.ref is None else f"{self.without_ref}@{self.ref}"


@dataclass(frozen=True, slots=True)
class AddressForm:
    """A form that addresses have, and the one parser of all of them.

    metavar       the form as help shows it
    noun          what is named in the realm
    needs_name    whether the realm alone is no address
    takes_ref     whether a reference may follow
    """

    metavar: str
    noun: str
    needs_name: bool = True
    takes_ref: bool = False

    def parse_address(self, text: str) -> Address:
        """An address of this form; whether anything is there is not looked at.

        raises        RefusedError that says which form is expected
        """
        place, at, ref = text.partition("@")
        realm, slash, name = place.partition("/")
        if not realm or bool(slash) != bool(name) or "/" in name:
            raise RefusedError(f"{text[:200]!r} is no address: write {self.metavar}")
        if self.needs_name and not name:
            raise RefusedError(
                f"{text[:200]!r} names a realm and no {self.noun}: write {self.metavar}, such as {realm}/{self.example}"
            )
        if at:
            self._check_ref(text, name, ref)
        return Address(realm, name, ref if at else None)

    def _check_ref(self, text: str, name: str, ref: str) -> None:
        if not self.takes_ref:
            raise RefusedError(f"{text[:200]!r} names a reference, which this command does not take: write {self.metavar}")
        if not name:
            raise RefusedError(f"{text[:200]!r} names a reference of no {self.noun}: write {self.metavar}")
        if not ref:
            raise RefusedError(f"{text[:200]!r} names no reference after its @: leave the @ out for the default branch")
        parse_revspec(ref)

    @property
    def example(self) -> str:
        """A name for examples in messages."""
        return "lake" if self.noun == "catalog" else "events"


CATALOG = AddressForm("REALM/CATALOG", "catalog")
CATALOG_REF = AddressForm("REALM/CATALOG[@REF]", "catalog", takes_ref=True)
CATALOG_BRANCH = AddressForm("REALM/CATALOG[@BRANCH]", "catalog", takes_ref=True)
FILE_TABLE = AddressForm("REALM/TABLE", "file table")
SCOPE = AddressForm("REALM[/CATALOG]", "catalog", needs_name=False)
STORE_SCOPE = AddressForm("[REALM[/CATALOG]]", "catalog", needs_name=False)
SCOPE_REF = AddressForm("REALM[/CATALOG[@REF]]", "catalog", needs_name=False, takes_ref=True)


class AddressArgument(click.Argument):
    """The argument that holds an address. It stands before all others."""

    def __init__(self, declarations: list[str], *, form: AddressForm, **settings: Any) -> None:
        super().__init__(declarations, metavar=form.metavar, is_eager=True, **settings)
        self.form = form

    def handle_parse_result(self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]) -> tuple[Any, list[str]]:
        text = opts.get(self.name)
        if isinstance(text, str) and self.form.needs_name and "/" not in text:
            self._refuse_two_words(ctx, text, next(_words(ctx, self, opts, args), ""))
        return super().handle_parse_result(ctx, opts, args)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        if value is None:
            return None
        try:
            return self.form.parse_address(value)
        except RefusedError as wrong:
            raise click.BadParameter(str(wrong), ctx, self) from wrong

    def _refuse_two_words(self, ctx: click.Context, realm: str, name: str) -> None:
        """Tell people who know realm and name as two arguments that they are one."""
        if name and "/" not in name and "@" not in realm:
            raise click.BadParameter(f"realm and {self.form.noun} are one argument: write {realm}/{name}", ctx, self)


def _words(ctx: click.Context, first: click.Argument, opts: Mapping[str, Any], args: Iterable[str]) -> Iterator[str]:
    """The words that the command line has for the arguments after the first one."""
    for parameter in ctx.command.params:
        if isinstance(parameter, click.Argument) and parameter is not first:
            value = opts.get(parameter.name)
            yield from (value if isinstance(value, tuple | list) else [value] if isinstance(value, str) else [])
    yield from args


def address_argument(form: AddressForm, *, required: bool = True) -> Callable[[F], F]:
    """The address of a command, as the argument ``address``."""
    return click.argument("address", cls=AddressArgument, form=form, required=required)


catalog_argument = address_argument(CATALOG)
catalog_ref_argument = address_argument(CATALOG_REF)
catalog_branch_argument = address_argument(CATALOG_BRANCH)
scope_argument = address_argument(SCOPE)
scope_ref_argument = address_argument(SCOPE_REF)
file_table_argument = address_argument(FILE_TABLE)
