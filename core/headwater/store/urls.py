"""URLs of stores: parsing them, the options that they may carry, and showing them without their secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from headwater.errors import RefusedError
from headwater.redaction import MASK
from headwater.settings import parse_duration
from headwater.store.backend import Backend

_UNSHOWN = "the store's URL (not shown, for it may hold a password)"
_BEGINNING = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:[0-9]*)?")
"""A host, in brackets where it has colons itself, and its port."""
_LONGEST_SECONDS = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A URL taken apart. ``whole`` and ``password`` are for the driver alone, and in no repr."""

    scheme: str
    place: str
    """Host and port, or several with commas between them, without user and password."""
    path: str
    """Without its first slash, percent signs decoded."""
    user: str | None
    password: str | None = field(repr=False)
    query: tuple[tuple[str, str], ...] = field(repr=False)
    whole: str = field(repr=False)

    @property
    def shown(self) -> str:
        """The URL for people: the password and the values of all options are stars."""
        return self._shown(is_open=False)

    @property
    def shown_open(self) -> str:
        """The URL for people once the store is open: the password is hidden, the options are shown, for known options hold no secrets."""
        return self._shown(is_open=True)

    def _shown(self, *, is_open: bool) -> str:
        if self.password is None and (is_open or not self.query):
            return self.whole
        parts = urlsplit(self.whole)
        user = "" if self.user is None else parts.netloc.rpartition("@")[0].partition(":")[0]
        secret = "" if self.password is None else f":{MASK}"
        place = self.place if self.user is None and self.password is None else f"{user}{secret}@{self.place}"
        query = parts.query if is_open else "&".join(f"{name}={MASK}" for name, _ in self.query)
        return f"{self.scheme}://{place}{parts.path}{'?' if query else ''}{query}"


@dataclass(frozen=True, slots=True)
class UrlOption:
    """What may stand in the query of a store's URL. Not for secrets: a store's URL shows its options once it is open.

    name          as it is written in the URL
    purpose       half a sentence for the table of options in the documentation
    default       as text, parsed like the rest; None: the backend gets None
    parse         from text to what the backend gets, for example ``as_seconds``, ``as_count`` or ``one_of("on", "off")``
    """

    name: str
    purpose: str
    default: str | None = None
    parse: Callable[[str], Any] = str
    """Raises ValueError or RefusedError with a sentence that says what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendKind:
    """One kind of store: what an entry point of the group ``headwater.backends`` has to name. Its name is the scheme.

    open          makes the backend of a URL and its options: by name, parsed, defaults filled in. Where there is no store yet,
                  it sets the database up if it may create one (third argument), and raises NotFoundError otherwise, having
                  written nothing. It raises RefusedError for a schema version that it does not know. It does not fork, for a
                  fork waits until it is done
    """

    example: str
    open: Callable[[StoreUrl, Mapping[str, Any], bool], Backend]
    options: tuple[UrlOption, ...] = ()

    def options_of(self, url: StoreUrl) -> dict[str, Any]:
        """The options of a URL, parsed, with defaults for the others.

        raises        RefusedError that names every unknown, repeated or malformed one, and what there is
        """
        known = {option.name: option for option in self.options}
        values = {option.name: None if option.default is None else option.parse(option.default) for option in self.options}
        faults: list[str] = []
        seen: set[str] = set()
        for name, text in url.query:
            if name not in known:
                faults.append(f"there is no option {name!r}")
            elif name in seen:
                faults.append(f"the option {name!r} stands there twice")
            else:
                try:
                    values[name] = known[name].parse(text)
                except (ValueError, RefusedError) as fault:
                    faults.append(f"the option {name!r}: {fault}")
            seen.add(name)
        if faults:
            names = ", ".join(known)
            there = f"the options of {url.scheme}:// are {names}" if known else f"{url.scheme}:// takes no options"
            raise RefusedError(f"store {url.shown!r}: {'; '.join(faults)}; {there}")
        return values


def parse_url(text: str) -> StoreUrl:
    """Take a URL apart.

    raises        RefusedError when the text is not a URL; it is not repeated, because it may hold a password
    """
    try:
        parts = urlsplit(text)
        query = tuple(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        is_url = bool(_BEGINNING.match(text))
        text.encode()
    except ValueError:
        is_url = False
    if not is_url:
        raise RefusedError(f"{_UNSHOWN} is not a URL: write scheme://place/name")
    if "\0" in unquote(text):
        raise RefusedError(f"{_UNSHOWN} has a NUL in it, which no name and no password can have")
    if "#" in text:
        raise RefusedError(f"{_UNSHOWN} has a # in it: write %23 where it belongs to a name or a password")
    if parts.netloc and "@" in parts.path + parts.query:
        raise RefusedError(
            f"{_UNSHOWN} has an @ behind its host: write %2F for / and %3F for ? in a password, and %40 for other @"
        )
    if not parts.netloc and re.search(":.*@", parts.path):
        raise RefusedError(
            f"{_UNSHOWN} has three slashes before what looks like a user and a password: write two,"
            " or %40 for an @ that belongs to a name"
        )
    login, has_login, place = parts.netloc.rpartition("@")
    if not all(_PORT.fullmatch(host) for host in place.split(",")):
        raise RefusedError(f"{_UNSHOWN} has a port that is no number: write user:password@host:port")
    user, has_password, password = login.partition(":")
    return StoreUrl(
        scheme=parts.scheme,
        place=place,
        path=unquote(parts.path.removeprefix("/")),
        user=unquote(user) if has_login else None,
        password=unquote(password) if has_password else None,
        query=query,
        whole=text,
    )


def as_count(text: str) -> int:
    """A whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"{text!r} is not a whole number from 1")
    return int(text)


def as_connections(text: str) -> int:
    """How many connections a pool may have: 1 to 1000."""
    count = as_count(text)
    if count > 1000:
        raise ValueError(f"{text!r} is more than 1000")
    return count


def as_seconds(text: str) -> float:
    """A duration such as ``500ms``, ``10s`` or ``2m``, above 0 and up to a day: drivers count longer ones wrongly."""
    seconds = parse_duration(text)
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise ValueError("it must be above 0 and at most 1d")
    return seconds


def one_of(*words: str) -> Callable[[str], str]:
    """A parser that accepts only these words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is none of {', '.join(words)}")
        return text

    return parse
