"""Content keys in path segments and query values, as Nessie's clients write them.

text      := plain | "." escaped
plain     := elements joined by dots; U+001D, or U+0000, stands for a dot inside an element
escaped   := elements joined by dots; "*." a dot, "**" a star, "*{" a slash, "*}" a backslash, "*[" a percent sign

Clients of the specification's level 2.2.0 escape where an element has a dot, slash, backslash or percent sign; older ones know only
the plain form. A leading dot tells the two apart, for no element is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from headwater.catalogs import ContentKey
from headwater.errors import RefusedError

_ESCAPES: Final = {".": ".", "*": "*", "{": "/", "}": "\\", "[": "%"}
_ESCAPED: Final = str.maketrans({character: f"*{letter}" for letter, character in _ESCAPES.items()})
_DOTS: Final = str.maketrans({"\x1d": ".", "\0": "."})
_NEED_ESCAPES: Final = frozenset("./\\%")


def parse_key_path(text: str) -> ContentKey:
    """Parse the text form of a key, once it is decoded from its URL.

    raises        RefusedError for an unknown escape, and for elements that make no key
    """
    if text.startswith("."):
        return ContentKey(tuple(_unescaped(text)))
    return ContentKey(tuple(element.translate(_DOTS) for element in text.split(".")))


def key_path_text(key: ContentKey) -> str:
    """Write the text form of a key: escaped where an element needs it, and plain otherwise."""
    if any(_NEED_ESCAPES.intersection(element) for element in key.elements):
        return "." + ".".join(element.translate(_ESCAPED) for element in key.elements)
    return ".".join(key.elements)


def key_from_elements(elements: Sequence[str]) -> ContentKey:
    """Make a key of the elements that a body lists.

    raises        RefusedError for elements that make no key
    """
    return ContentKey(tuple(elements))


def _unescaped(text: str) -> Iterator[str]:
    element, characters = "", iter(text[1:])
    for character in characters:
        if character == "*":
            element += _escape(text, next(characters, ""))
        elif character == ".":
            yield element
            element = ""
        else:
            element += character
    yield element


def _escape(text: str, letter: str) -> str:
    if letter not in _ESCAPES:
        raise RefusedError(f"key {text!r}: after a star only . * {{ }} and [ have a meaning, not {letter!r}")
    return _ESCAPES[letter]
