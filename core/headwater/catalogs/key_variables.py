"""The variables by which filters know a content key. ``encodedKey`` and ``namespace`` are spelled as Nessie's clients spell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.catalogs.content import ContentKey
from headwater.catalogs.filter_text import SCALAR, FilterShape, ListShape

KEY_FIELDS: dict[str, FilterShape] = {
    "key": SCALAR,
    "encodedKey": SCALAR,
    "keyElements": ListShape(SCALAR),
    "namespace": SCALAR,
    "namespaceElements": ListShape(SCALAR),
    "name": SCALAR,
}
_DOT_INSIDE = "\x1d"


def key_variables(key: ContentKey) -> dict[str, Any]:
    """The values of ``KEY_FIELDS``. A dot inside an element is U+001D in the encoded ones, and a dot in ``key``."""
    elements = key.elements
    return {
        "key": ".".join(elements),
        "encodedKey": encoded_elements(elements),
        "keyElements": list(elements),
        "namespace": encoded_elements(elements[:-1]),
        "namespaceElements": list(elements[:-1]),
        "name": elements[-1],
    }


def encoded_elements(elements: Sequence[str]) -> str:
    """The elements joined by dots, with U+001D for a dot inside an element."""
    return ".".join(element.replace(".", _DOT_INSIDE) for element in elements)


def index_prefix(encoded: str) -> bytes | None:
    """The prefix of the index keys of those keys whose ``encodedKey`` begins with a text; None where none can.

    Both spell the same elements, character by character.
    """
    if any(character < " " and character != _DOT_INSIDE for character in encoded):
        return None
    return encoded.replace(".", "\0").replace(_DOT_INSIDE, ".").encode("utf-8", errors="surrogatepass")
