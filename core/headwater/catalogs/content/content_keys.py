"""Content keys: lists of names, their bytes in an index, and their text for people.

An index key is the UTF-8 of the elements joined by 0x00. No element holds a control character, so keys sort element by element,
and everything below a namespace has the namespace's key and one 0x00 as prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from headwater.errors import CorruptionError, RefusedError
from headwater.index import after_prefix

ELEMENTS_LIMIT = 20
KEY_CHARACTERS_LIMIT = 500
KEY_BYTES_LIMIT = 500
_SEPARATOR = b"\0"
_ILLEGAL = re.compile("[\\x00-\\x1f\\x7f\\ud800-\\udfff]")


@dataclass(frozen=True, slots=True, order=True)
class ContentKey:
    """The path of a content in a catalog: ``ContentKey(("sales", "orders"))``. Case-sensitive, and ordered element by element.

    raises        RefusedError that names the element and what is wrong with it
    """

    elements: tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.elements, str):
            raise RefusedError(
                f"{self.elements!r} is one string, and a content key is a list of them: take it apart with parse"
            )
        object.__setattr__(self, "elements", tuple(self.elements))
        _check(self.elements)

    @classmethod
    def of(cls, *elements: str) -> ContentKey:
        return cls(elements)

    @classmethod
    def parse(cls, text: str) -> ContentKey:
        r"""Parse a key's text form: elements joined by dots, ``\.`` for a dot and ``\\`` for a backslash inside an element.

        raises        RefusedError when a backslash stands before anything else, or the elements make no key
        """
        return cls(tuple(_unescaped_elements(text)))

    @classmethod
    def from_index(cls, data: bytes) -> ContentKey:
        """Decode a key from the bytes that ``to_index`` wrote.

        raises        CorruptionError when no such key has these bytes
        """
        try:
            return cls(tuple(data.decode().split("\0")))
        except (UnicodeDecodeError, RefusedError) as fault:
            raise CorruptionError(f"index key {data!r} is no content key: {fault}") from fault

    def to_index(self) -> bytes:
        return _SEPARATOR.join(element.encode() for element in self.elements)

    def child_prefix(self) -> bytes:
        """The prefix shared by the index keys of everything below this key, and by nothing else."""
        return self.to_index() + _SEPARATOR

    @property
    def name(self) -> str:
        return self.elements[-1]

    @property
    def parent(self) -> ContentKey | None:
        return ContentKey(self.elements[:-1]) if len(self.elements) > 1 else None

    def ancestors(self) -> Iterator[ContentKey]:
        """The namespaces that contain this key, innermost first."""
        return iter(_namespaces(self.elements[:-1]))

    def child(self, name: str) -> ContentKey:
        return ContentKey((*self.elements, name))

    def is_below(self, other: ContentKey) -> bool:
        return len(self.elements) > len(other.elements) and self.elements[: len(other.elements)] == other.elements

    def __str__(self) -> str:
        return ".".join(element.replace("\\", "\\\\").replace(".", "\\.") for element in self.elements)


def index_bounds(
    prefix: ContentKey | None, start: ContentKey | None, end: ContentKey | None
) -> tuple[bytes | None, bytes | None]:
    """The range of index keys below ``prefix``, from ``start`` on and before ``end``; None: no bound on that side."""
    below = b"" if prefix is None else prefix.child_prefix()
    first = max(below, b"" if start is None else start.to_index()) or None
    lasts = [bound for bound in (after_prefix(below), None if end is None else end.to_index()) if bound is not None]
    return first, min(lasts, default=None)


def check_namespace_key(key: ContentKey) -> None:
    """Check that a namespace's own name is not a single dot.

    raises        RefusedError
    """
    if key.name == ".":
        raise RefusedError(f"namespace key {list(key.elements)}: the last element must not be '.'")


@lru_cache(maxsize=1000)
def _namespaces(elements: tuple[str, ...]) -> tuple[ContentKey, ...]:
    """The keys of these elements and of all namespaces above them; cached, because neighboring keys share them and checks take long."""
    return tuple(ContentKey(elements[:length]) for length in range(len(elements), 0, -1))


def _check(elements: tuple[str, ...]) -> None:
    if not elements:
        raise RefusedError("a content key needs at least one element")
    if len(elements) > ELEMENTS_LIMIT:
        raise RefusedError(f"content key {list(elements)} has {len(elements)} elements; {ELEMENTS_LIMIT} are allowed")
    for number, element in enumerate(elements, start=1):
        fault = _fault(element)
        if fault:
            raise RefusedError(f"content key {list(elements)}: element {number} {fault}")
    characters = sum(map(len, elements))
    if characters > KEY_CHARACTERS_LIMIT:
        raise RefusedError(
            f"content key starting {elements[0][:40]!r} has {characters} characters; {KEY_CHARACTERS_LIMIT} are allowed in all,"
            f" and {_longest(elements)}"
        )
    size = sum(len(element.encode()) for element in elements) + len(elements) - 1
    if size > KEY_BYTES_LIMIT:
        raise RefusedError(
            f"content key starting {elements[0][:40]!r} takes {size} bytes in UTF-8, one of them between every two elements; "
            f"{KEY_BYTES_LIMIT} are allowed, and {_longest(elements)}"
        )


def _longest(elements: tuple[str, ...]) -> str:
    sizes = [len(element.encode()) for element in elements]
    at = sizes.index(max(sizes))
    return f"element {at + 1} is the longest, with {len(elements[at])} characters in {sizes[at]} bytes"


def _fault(element: str) -> str:
    if not isinstance(element, str):
        return f"is {type(element).__name__}; elements are strings"
    if not element:
        return "is empty"
    found = _ILLEGAL.search(element)
    if found is None:
        return ""
    kind = "control character" if found[0] <= "\x7f" else "half of a surrogate pair"
    return f"({element!r}) contains the {kind} {found[0]!r}"


def _unescaped_elements(text: str) -> Iterator[str]:
    element, characters = "", iter(text)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", "."):
                raise RefusedError(f"key {text!r}: a backslash stands only before a dot or another backslash")
            element += escaped
        elif character == ".":
            yield element
            element = ""
        else:
            element += character
    yield element
