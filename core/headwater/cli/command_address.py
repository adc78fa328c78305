"""How commands are told what they are about: a realm and what is in it, in one word, such as ``acme/lake@dev``.

    REALM/CATALOG[@REF]   in full; without @REF on the default branch
    /CATALOG[@REF]        in the realm that the environment or the context names
    @REF                  in the catalog that they name; @ alone with the reference that they name, too
    (left out)            the same as @

An address stands before all other arguments. It is left out where the others are complete without it, and where the first argument has not
the form of an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from headwater.catalogs import parse_revspec
from headwater.cli.named_contexts import CallDefaults, NamedContext
from headwater.errors import RefusedError

F = TypeVar("F", bound=Callable[..., Any])
_ADDRESS = re.compile(r"[^/@]*/[^/@]+(@.*)?|@.*", re.DOTALL)
"""What can only be an address, where any other argument could stand, too."""


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
    noun          what is named in the realm; empty: nothing, the realm is meant
    needs_name    whether the realm alone is no address
    takes_ref     whether a reference may follow
    has_ref_of_context  whether the reference of the context counts where the address is left out
    is_written    whether the name has to be written: of what a command creates or deletes, and of what is no catalog
    """

    metavar: str
    noun: str = "catalog"
    needs_name: bool = True
    takes_ref: bool = False
    has_ref_of_context: bool = True
    is_written: bool = False

    def parse_address(self, text: str, defaults: CallDefaults | None = None) -> Address:
        """An address of this form; whether anything is there is not looked at.

        defaults      what a short form leaves out
        raises        RefusedError that says which form is expected
        """
        place, at, ref = text.partition("@")
        realm, slash, name = place.partition("/")
        context = defaults.context if defaults else NamedContext("")
        if at and not place and not self.is_written:
            realm, name = context.realm, context.catalog if self.noun else ""
            if not ref:
                ref = at = context.ref if name and self.takes_ref and self.has_ref_of_context else ""
        elif slash and not realm and name:
            realm = context.realm
        elif not realm or bool(slash) != bool(name):
            raise RefusedError(f"{text[:200]!r} is no address: write {self.shape}")
        if not realm:
            raise self._unsaid(text, "realm")
        if not place and self.needs_name and not name:
            raise self._unsaid(text, "catalog")
        self._check_name(text, realm, name)
        if at:
            self._check_ref(text, name, ref)
        return Address(realm, name, ref if at else None)

    def complete_address(self, defaults: CallDefaults) -> Address | None:
        """The address that is meant where it is left out; None where that does not say enough."""
        said = defaults.context
        if self.is_written or not said.realm or (self.needs_name and not said.catalog):
            return None
        return self.parse_address("@", defaults)

    def _unsaid(self, text: str, what: str) -> RefusedError:
        return RefusedError(
            f"{text[:200]!r} leaves the {what} out, and neither HEADWATER_{what.upper()} nor a context names one: write {self.shape}"
        )

    def _check_name(self, text: str, realm: str, name: str) -> None:
        if "/" in name:
            raise RefusedError(f"{text[:200]!r} is no address: write {self.shape}")
        if self.needs_name and not name:
            raise RefusedError(
                f"{text[:200]!r} names a realm and no {self.noun}: write {self.shape}, such as {realm}/{self.example}"
            )
        if name and not self.noun:
            raise RefusedError(f"{text[:200]!r} names more than a realm: write {self.shape}, such as {realm}")

    def _check_ref(self, text: str, name: str, ref: str) -> None:
        if not self.takes_ref:
            raise RefusedError(f"{text[:200]!r} names a reference, which this command does not take: write {self.shape}")
        if not name:
            raise RefusedError(f"{text[:200]!r} names a reference of no {self.noun}: write {self.shape}")
        if not ref:
            raise RefusedError(f"{text[:200]!r} names no reference after its @: leave the @ out for the default branch")
        parse_revspec(ref)

    @property
    def shape(self) -> str:
        """The form in sentences, which say elsewhere that it may be left out."""
        return self.metavar[1:-1] if self.metavar.startswith("[") else self.metavar

    @property
    def example(self) -> str:
        """A name for examples in messages."""
        return "lake" if self.noun == "catalog" else "events"


REALM = AddressForm("REALM", noun="", needs_name=False)
CATALOG = AddressForm("REALM/CATALOG")
CATALOG_NAME = AddressForm("REALM/CATALOG", is_written=True)
CATALOG_REF = AddressForm("REALM/CATALOG[@REF]", takes_ref=True)
CATALOG_BRANCH = AddressForm("REALM/CATALOG[@BRANCH]", takes_ref=True)
WAREHOUSE = AddressForm("[REALM/CATALOG[@REF]]", takes_ref=True)
FILE_TABLE = AddressForm("REALM/TABLE", "file table", is_written=True)
SCOPE = AddressForm("REALM[/CATALOG]", needs_name=False)
STORE_SCOPE = AddressForm("[REALM[/CATALOG]]", needs_name=False)
SCOPE_REF = AddressForm("REALM[/CATALOG[@REF]]", needs_name=False, takes_ref=True)
CONTEXT_SCOPE = AddressForm("[REALM[/CATALOG[@REF]]]", needs_name=False, takes_ref=True)
RESTORED_SCOPE = AddressForm("REALM[/CATALOG[@REF]]", needs_name=False, takes_ref=True, is_written=True)
GRANT_SCOPE = AddressForm("REALM[/CATALOG[@REF]]", needs_name=False, takes_ref=True, has_ref_of_context=False)


class AddressArgument(click.Argument):
    """The argument that holds an address. It stands before all others."""

    def __init__(self, declarations: list[str], *, form: AddressForm, **settings: Any) -> None:
        super().__init__(declarations, metavar=form.metavar, **settings)
        self.form = form

    def handle_parse_result(self, ctx: click.Context, opts: Any, args: list[str]) -> tuple[Any, list[str]]:
        words = [*self._words(ctx, opts), *args]
        if not ctx.resilient_parsing and self.required:
            left_out = self.form.complete_address(_defaults(ctx))
            if left_out is not None and self._may_be_left_out(ctx, words):
                ctx.obj.note_doubt(words[0], left_out)
            if left_out is not None and not self._has_address(ctx, words):
                # the parser gave the first word to the address: each goes to the argument after it
                args = self._deal(ctx, opts, words)
                ctx.params[self.name or ""] = self._value(left_out)
                ctx.obj.note_address(str(left_out), _taken(left_out, ""))
                return left_out, args
        if words and self.required and self.form.needs_name and "/" not in words[0]:
            self._refuse_two_words(ctx, *words[:2])
        return super().handle_parse_result(ctx, opts, args)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        short = value.startswith(("/", "@"))
        try:
            address = self.form.parse_address(value, _defaults(ctx) if short else None)
        except RefusedError as wrong:
            raise click.BadParameter(str(wrong), ctx, self) from wrong
        if short and not ctx.resilient_parsing:
            ctx.obj.note_address(str(address), _taken(address, value))
        return self._value(address)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return cast(list[CompletionItem], ctx.obj.complete_address(self.form, incomplete))

    def _value(self, address: Address) -> Address | str:
        return address if self.form.noun else address.realm

    def _others(self, ctx: click.Context) -> list[click.Argument]:
        return [each for each in ctx.command.params if isinstance(each, click.Argument) and each is not self]

    def _words(self, ctx: click.Context, opts: Any) -> Iterator[str]:
        """The words that the command line has for its arguments."""
        for argument in (self, *self._others(ctx)):
            value = opts.get(argument.name)
            yield from value if isinstance(value, tuple | list) else [value] if isinstance(value, str) else []

    def _counts(self, ctx: click.Context) -> tuple[int, float]:
        """How many words the other arguments need at least, and take at most."""
        others = self._others(ctx)
        most = float("inf") if any(argument.nargs < 0 for argument in others) else len(others)
        return sum(argument.required for argument in others), most

    def _may_be_left_out(self, ctx: click.Context, words: Sequence[str]) -> bool:
        """Whether the other arguments could be complete with the first word and without it."""
        least, most = self._counts(ctx)
        return least < len(words) <= most

    def _has_address(self, ctx: click.Context, words: Sequence[str]) -> bool:
        """Whether the first word is the address: it has to be where all arguments are there, and cannot be where one is missing."""
        if self._may_be_left_out(ctx, words):
            return not self.form.needs_name or _ADDRESS.fullmatch(words[0]) is not None
        return len(words) > self._counts(ctx)[0]

    def _deal(self, ctx: click.Context, opts: Any, words: Sequence[str]) -> list[str]:
        """Give the words to the arguments after this one; returns those that are too many."""
        left = list(words)
        opts.pop(self.name, None)
        for argument in self._others(ctx):
            opts.pop(argument.name, None)
            if argument.nargs < 0 and left:
                opts[argument.name], left = tuple(left), []
            elif left:
                opts[argument.name] = left.pop(0)
        return left

    def _refuse_two_words(self, ctx: click.Context, realm: str, name: str = "") -> None:
        """Tell people who know realm and name as two arguments that they are one."""
        if name and "/" not in name and "@" not in realm:
            raise click.BadParameter(f"realm and {self.form.noun} are one argument: write {realm}/{name}", ctx, self)


def _taken(address: Address, written: str) -> list[str]:
    """The names of what an address has from the defaults."""
    if written.startswith("/"):
        return ["realm"]
    names = ["realm", "catalog"] if address.name else ["realm"]
    return names if address.ref is None or written.strip("@") else [*names, "ref"]


def _defaults(ctx: click.Context) -> CallDefaults:
    return cast(CallDefaults, ctx.obj.defaults)


def address_argument(form: AddressForm, *, name: str = "address", required: bool = True) -> Callable[[F], F]:
    """The address of a command, as its first argument: an ``Address``, or the id of a realm where nothing else can be named."""
    return click.argument(name, cls=AddressArgument, form=form, required=required)


catalog_argument = address_argument(CATALOG)
named_catalog_argument = address_argument(CATALOG_NAME)
catalog_ref_argument = address_argument(CATALOG_REF)
catalog_branch_argument = address_argument(CATALOG_BRANCH)
scope_argument = address_argument(SCOPE)
scope_ref_argument = address_argument(SCOPE_REF)
grant_scope_argument = address_argument(GRANT_SCOPE)
file_table_argument = address_argument(FILE_TABLE)
realm_address_argument = address_argument(REALM, name="realm_id")
