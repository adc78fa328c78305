"""What Go's own JSON reader says of what is none, in its words."""

from __future__ import annotations

__all__ = ["first_wrong", "summary"]

_LITERALS = ("null", "true", "false")
MOST_SHOWN = 30


def first_wrong(raw: bytes) -> str:
    """Where it stops being JSON: in a literal, before the first key of an object, or at once."""
    text = raw.lstrip()
    literal = next((word for word in _LITERALS if text[:1] == word[:1].encode()), "")
    for number, sign in enumerate(literal[1:], 1):
        if text[number : number + 1] != sign.encode():
            return f"invalid character {_quoted(text[number : number + 1])} in literal {literal} (expecting '{sign}')"
    if text[:1] == b"{":
        return f"invalid character {_quoted(text[1:].lstrip()[:1])} looking for beginning of object key string"
    return f"invalid character {_quoted(text[:1])} looking for beginning of value"


def summary(raw: bytes) -> str:
    """The start of a body, as text where it looks like an object."""
    shown, rest = raw[:MOST_SHOWN], " ..." if len(raw) > MOST_SHOWN else ""
    if not raw:
        return "<empty>"
    return (shown.decode(errors="replace") if raw[:1] == b"{" else shown.hex()) + rest


def _quoted(sign: bytes) -> str:
    return f"'{sign.decode()}'" if sign.isascii() else f"'\\x{sign.hex()}'"
