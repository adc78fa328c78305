"""Strict JSON from outside: what two readers could take for two things is refused with a sentence, and nothing in it can stop a server."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any, Final

import msgspec

from headwater.errors import RefusedError
from headwater.typed_values import convert
from headwater_server.error_answers import ProtocolError

DEPTH_LIMIT: Final = 200
"""Objects and lists inside one another, at most: as many as a metadata file may have. A struct inside another takes three of them."""
_GZIP_MEMBERS_LIMIT: Final = 100
"""What follows a member is copied, so that a body of nothing but empty members would take hours."""
_SHOWN_CHARACTERS = 80
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_PATH = re.compile(r"^(?P<what>.*?)(?: - at `\$?\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([^"';\s]+)""", re.IGNORECASE)
_LATIN_1 = frozenset({"iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1"})
_CHARSETS = _LATIN_1 | {"utf-8", "utf8", "us-ascii", "ascii"}
_JAVA_CLIENT = "Apache Iceberg "
"""How Iceberg's Java library begins its X-Client-Version; libraries in other languages give a version, or another name."""
_GZIP_WINDOW = zlib.MAX_WBITS | 16


def unpacked_body(raw: bytes, encoding: str, *, limit_bytes: int) -> bytes:
    """A body as it was before ``Content-Encoding``. No more than the limit and one byte is ever unpacked.

    raises        ProtocolError: 415 for an encoding that is not read, 413 for a body that is larger; RefusedError for broken gzip
    """
    if encoding.strip().lower() in ("", "identity"):
        return raw
    if encoding.strip().lower() not in ("gzip", "x-gzip"):
        raise ProtocolError(
            f"a body with Content-Encoding {encoding[:_SHOWN_CHARACTERS]!r} is not read; send it as gzip or as it is",
            status=415,
            type_="UnsupportedMediaTypeException",
            Accept_Encoding="gzip",
        )
    body, members = bytearray(), 0
    while raw:
        members += 1
        if members > _GZIP_MEMBERS_LIMIT:
            raise RefusedError(f"the body has more than {_GZIP_MEMBERS_LIMIT} gzip members")
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            body += member.decompress(raw, limit_bytes + 1 - len(body))
        except zlib.error as fault:
            raise RefusedError("the body is not gzip, as its Content-Encoding says") from fault
        if len(body) > limit_bytes:
            raise too_large_error(limit_bytes, "unpacked")
        if not member.eof:
            raise RefusedError("the body breaks off: its gzip has no end")
        raw = member.unused_data
    return bytes(body)


def too_large_error(limit_bytes: int, how: str = "received") -> ProtocolError:
    return ProtocolError(
        f"the body is larger, {how}, than the {limit_bytes} bytes that are read here: HEADWATER_SERVER_BODY_BYTES, and less of what nobody"
        " has proved to send",
        status=413,
        type_="PayloadTooLargeException",
        is_closing=True,
    )


def utf8_body(raw: bytes, *, content_type: str, client: str) -> bytes:
    """A body of text in UTF-8, whichever charset it came in.

    A declared charset counts. Without one it is UTF-8; but Iceberg's Java library writes ISO-8859-1, declares nothing, and names itself.

    content_type  the header Content-Type
    client        the header X-Client-Version
    raises        ProtocolError: 415 for a charset that is not read
    """
    match = _CHARSET.search(content_type)
    charset = "" if match is None else match[1].lower()
    if charset and charset not in _CHARSETS:
        raise ProtocolError(
            f"a body in the charset {charset[:_SHOWN_CHARACTERS]!r} is not read; send UTF-8",
            status=415,
            type_="UnsupportedMediaTypeException",
        )
    is_latin = charset in _LATIN_1 or (not charset and client.startswith(_JAVA_CLIENT) and not _is_utf8(raw))
    return raw.decode("iso-8859-1").encode() if is_latin else raw


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def parse_json(raw: bytes) -> Any:
    """The value of a JSON text.

    raises        RefusedError for what is no JSON: NaN, Infinity and numbers beyond a double's range among it; for a name that an object
                  has twice, deep nesting, bytes that are not UTF-8, and half a surrogate pair. Its text quotes names at most
    """
    if not raw.strip():
        raise RefusedError("the body is empty; send JSON")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise RefusedError(f"the body is not UTF-8, from byte {fault.start} on") from None
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as fault:
        raise RefusedError(f"the body is not JSON: {fault.msg}, in line {fault.lineno}, column {fault.colno}") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # Python reads no number of more than 4300 digits
        raise RefusedError("the body has a number with too many digits") from None
    _check_depth(value)
    if _SURROGATE_ESCAPE.search(text):
        _check_surrogates(value)
    return value


def convert_body(value: Any, kind: Any) -> Any:
    """A parsed body as a value of a type; what the type does not know is ignored.

    raises        RefusedError with the path of the first element that does not fit
    """
    try:
        return convert(value, kind)
    except msgspec.ValidationError as fault:
        raise RefusedError(fault_text(fault, "the body")) from None


def convert_query(parameters: dict[str, str | list[str]], kind: Any) -> Any:
    """Parameters as a value of a type whose numbers and booleans are read from text.

    raises        RefusedError with the name of the first parameter that does not fit
    """
    try:
        return convert(parameters, kind, strict=False)
    except msgspec.ValidationError as fault:
        raise RefusedError(_with_choices(fault_text(fault, "the query"), kind)) from None


def fault_text(fault: msgspec.ValidationError, where: str) -> str:
    """A fault that msgspec found, with the path of its element first: ``requirements[0].type: expected `str`, got `int` ``."""
    parts = _PATH.match(str(fault))
    assert parts is not None, "the pattern matches any text"
    what = parts["what"][:1].lower() + parts["what"][1:]
    return f"{parts['path']}: {what}" if parts["path"] else f"{where}: {what}"


def _with_choices(text: str, kind: Any) -> str:
    """A fault with the values that its parameter may have, where there are only some."""
    for field in msgspec.inspect.type_info(kind).fields:  # type: ignore[attr-defined]  # a query's type is a Struct
        if text.startswith(f"{field.encode_name}: ") and isinstance(field.type, msgspec.inspect.LiteralType):
            return f"{text}; give {' or '.join(map(str, field.type.values))}"
    return text


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    object_ = dict(pairs)
    if len(object_) != len(pairs):
        seen: set[str] = set()
        double = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # adds, goes on
        raise RefusedError(f"the body has an object with the name {double[:_SHOWN_CHARACTERS]!r} twice")
    return object_


def _refuse_constant(word: str) -> Any:
    raise RefusedError(f"the body has the number {word}, which JSON does not know")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise RefusedError("the body has a number beyond the range of a double")
    return number


def _too_deep() -> RefusedError:
    return RefusedError(f"the body has more than {DEPTH_LIMIT} objects and lists inside one another")


def _check_depth(value: Any) -> None:
    """Go down level by level: recursion would end where the stack does."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEPTH_LIMIT):
        if not level:
            return
        children = (item.values() if isinstance(item, dict) else item for item in level)
        level = [child for inner in children for child in inner if isinstance(child, dict | list)]
    if level:
        raise _too_deep()


def _check_surrogates(value: Any) -> None:
    """Half a pair is no character: no encoder would write what was read."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RefusedError("the body has half a surrogate pair, such as \\ud800 alone, which is no character") from None
