"""The text of a filter in CEL: its tokens, and the checks that come before any evaluation.

CEL as such ends always, but not soon: comprehensions within comprehensions multiply, ``map`` grows what it is given, and a regular
expression is compiled for every item. So a filter is a part of CEL: texts, numbers, lists, fields of the declared variables,
operators, the functions of ``FUNCTIONS``, the methods of ``METHODS``, and the comprehensions of ``MACROS``. Within one of
these, another one may range only over what its variable holds, so that the work grows with the values and not with their
powers. For the same reason there is no ``filter``, which copies what it has found for every element that it finds, lists are not
added to each other, and what is written out as a list may be gone through only for so many steps. A pattern of ``matches``
stands in quotes, and its cost is bounded.

The tokens are read here, and not asked of the library, which tells neither positions nor scopes. Where the two could read a
text differently (comments, triple quotes, texts of bytes) the text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from headwater.errors import RefusedError

TEXT_LIMIT = 4000
"""The most characters of a filter."""
FUNCTIONS = frozenset({"has", "size", "timestamp", "duration", "string", "int", "uint", "double", "dyn"})
METHODS = frozenset({"startsWith", "endsWith", "contains", "matches", "size"}) | {
    f"get{part}"
    for part in (
        "FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hours", "Minutes", "Seconds", "Milliseconds"
    )
}  # fmt: skip
MACROS = frozenset({"exists", "all", "exists_one"})
_WORDS = frozenset({"true", "false", "null", "in"})

TokenKind = Literal["text", "number", "name", "sign"]


@dataclass(frozen=True, slots=True)
class ListShape:
    """A list whose elements have this shape."""

    element: FilterShape


FilterShape = Mapping[str, "FilterShape"] | ListShape | None
"""What may follow a value: the fields of an object, the elements of a list; None: nothing is known, anything may."""
SCALAR: FilterShape = {}
"""A value without fields."""


@dataclass(frozen=True, slots=True)
class FilterToken:
    """A token of a filter. ``value`` is the decoded text of a quoted one, and the token as it stands otherwise."""

    kind: TokenKind
    value: str
    start: int
    end: int

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.value in signs


_TOKEN = re.compile(
    r"""(?P<space>[\t \r\n\f]+)
    |(?P<raw>[rR](?:'[^'\r\n]*'|"[^"\r\n]*"))
    |(?P<text>'(?:[^'\\\r\n]|\\[^\r\n])*'|"(?:[^"\\\r\n]|\\[^\r\n])*")
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?[uU]?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]])""",
    re.VERBOSE,
)
_UNSURE = re.compile(r"'''|\"\"\"|//")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"`?])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.?))")
_SHORT = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def refuse_filter(text: str, what: str) -> NoReturn:
    """Raise the RefusedError of a filter that cannot be used."""
    raise RefusedError(f"the filter {_shown(text)} cannot be used: {what}")


def read_tokens(text: str) -> tuple[FilterToken, ...]:
    """Read the tokens of a filter.

    raises        RefusedError with the character that begins none
    """
    if len(text) > TEXT_LIMIT:
        refuse_filter(text, f"it has {len(text)} characters; {TEXT_LIMIT} are allowed")
    tokens = tuple(_tokens(text))
    if not tokens:
        refuse_filter(text, "it is empty")
    return tokens


def _tokens(text: str) -> Iterator[FilterToken]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or _is_unsure(text, match):
            refuse_filter(text, f"{text[at : at + 3]!r} at character {at + 1} is not part of a filter")
        token = _token(text, match)
        if token is not None:
            yield token
        at = match.end()


def _is_unsure(text: str, match: re.Match[str]) -> bool:
    """True where the library might read on beyond this token, or read another one."""
    is_prefix = match.lastgroup in ("name", "number") and text[match.end() : match.end() + 1] in ("'", '"')
    return is_prefix or _UNSURE.match(text, match.start()) is not None


def _token(text: str, match: re.Match[str]) -> FilterToken | None:
    piece, start, end = match[0], match.start(), match.end()
    if match.lastgroup == "space":
        return None
    if match.lastgroup == "raw":
        return FilterToken("text", piece[2:-1], start, end)
    if match.lastgroup == "text":
        return FilterToken("text", _ESCAPE.sub(lambda escape: _unescaped(text, escape), piece[1:-1]), start, end)
    kind: TokenKind = "name" if match.lastgroup == "name" else "number" if match.lastgroup == "number" else "sign"
    return FilterToken(kind, piece, start, end)


def _unescaped(text: str, escape: re.Match[str]) -> str:
    short, *codes, octal, _ = escape.groups()
    if short:
        return _SHORT.get(short, short)
    if octal:
        return chr(int(octal, 8))
    code = next((code for code in codes if code), None)
    number = -1 if code is None else int(code, 16)
    if not 0 <= number < 0x110000 or 0xD800 <= number < 0xE000:
        refuse_filter(text, f"{escape[0]} stands for no character; write a backslash twice, or the text as r'...'")
    return chr(number)


def quoted_text(value: str) -> str:
    """A text as CEL writes it."""
    return "'" + "".join(_quoted(character) for character in value) + "'"


def _quoted(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    return character if character >= " " and character != "\x7f" else f"\\x{ord(character):02x}"


@dataclass(frozen=True, slots=True)
class _Scope:
    """The variables that an open bracket adds: one within a comprehension, none otherwise."""

    variable: str | None = None
    shape: FilterShape = None


def check_filter_names(text: str, tokens: Sequence[FilterToken], declared: Mapping[str, FilterShape]) -> int:
    """Check every name of a filter against what is declared, and what is done with it.

    returns       about how many steps an evaluation takes, beside those over lists that the value has: one for each token, and those of
                  comprehensions over lists that are written out
    raises        RefusedError with the name, and what there is instead; for a use that takes too long
    """
    check = _NameCheck(text, tokens, declared)
    check.walk()
    return len(tokens) + check.steps


_STEPS_LIMIT = 20_000
"""For all comprehensions of a filter over lists that are written out; some 30 of them take a microsecond."""
_SUMS_LIMIT = 20
_COMPARING = ("==", "!=")


class _NameCheck:
    """One walk over the tokens of a filter, with the variables that are known at each."""

    def __init__(self, text: str, tokens: Sequence[FilterToken], declared: Mapping[str, FilterShape]) -> None:
        self._text = text
        self._tokens = tokens
        self._declared = declared
        self._scopes: list[_Scope] = []
        self._pattern_micros = 0
        self._pairs = _bracket_pairs(tokens)
        self._sums = 0
        self.steps = 0

    def walk(self) -> None:
        for at, token in enumerate(self._tokens):
            if token.is_sign("(", "["):
                self._scopes.append(self._opened(at))
            elif token.is_sign(")", "]") and self._scopes:
                self._scopes.pop()
            elif token.kind == "name":
                self._check_name(at, token.value)
            elif token.is_sign(".") and not self._is_behind_value(at):
                refuse_filter(self._text, f"the dot at character {token.start + 1} stands behind no value")
            elif token.is_sign("+"):
                self._check_sum(at)

    def _check_name(self, at: int, name: str) -> None:
        is_member, is_called = self._is(at - 1, "."), self._is(at + 1, "(")
        if is_called and name not in (METHODS | MACROS if is_member else FUNCTIONS):
            known = METHODS | MACROS if is_member else FUNCTIONS
            refuse_filter(self._text, f"{name!r} is not declared: a filter calls {', '.join(sorted(known))}")
        if is_called and name == "matches":
            self._check_pattern(at)
        if not is_called and not is_member and name not in _WORDS and not self._is_new_variable(at):
            shape, end = self._path_from(at)
            if _is_whole(shape, is_declared=name in self._declared, length=(end - at) // 2):
                self._check_whole(at, end)

    @property
    def _variable(self) -> str | None:
        """The variable of the innermost comprehension that is open."""
        return next((scope.variable for scope in reversed(self._scopes) if scope.variable is not None), None)

    def _check_whole(self, first: int, last: int) -> None:
        """Check the use of a list or an object as a whole: its copies, and comparisons again and again, would take too long."""
        is_asked = self._is(last + 1, "[", ".") or self._is_argument(first, last)
        is_compared = any(self._is(at, *_COMPARING) or self._is_word(at, "in") for at in (first - 1, last + 1))
        is_inner = self._variable is None or self._tokens[first].value == self._variable
        if not is_asked and not (is_compared and is_inner):
            path = "".join(token.value for token in self._tokens[first : last + 1])
            refuse_filter(
                self._text,
                f"{path!r} is not one value: outside of comprehensions it is compared, and everywhere it is asked for its size, for a"
                " field or an element",
            )

    def _is_argument(self, first: int, last: int) -> bool:
        """Whether a path is all that a function of one argument is given."""
        is_called = self._is(first - 1, "(") and self._is(last + 1, ")") and self._is_name(first - 2)
        return is_called and self._tokens[first - 2].value in (FUNCTIONS | METHODS) - {"dyn"}

    def _check_sum(self, at: int) -> None:
        """Check that texts, numbers or times are added: each sum of lists is another copy."""
        self._sums += 1
        if self._sums > _SUMS_LIMIT or not (self._is_scalar_before(at - 1) and self._is_scalar_from(at + 1)):
            refuse_filter(
                self._text,
                f"the sum at character {self._tokens[at].start + 1}: up to {_SUMS_LIMIT} times texts, numbers and times are added, each"
                " as it stands or as a field or function gives it",
            )

    def _is_scalar_before(self, at: int) -> bool:
        if self._is(at, ")"):
            called = self._pairs.get(at, 0) - 1
            return self._is_name(called) and self._tokens[called].value in (FUNCTIONS | METHODS) - {"dyn"}
        if not self._is_name(at):
            return at >= 0 and self._tokens[at].kind in ("text", "number")
        first = at
        while self._is(first - 1, ".") and self._is_name(first - 2):
            first -= 2
        return self._is_scalar(first, self._path_from(first)[0])

    def _is_scalar(self, first: int, shape: FilterShape) -> bool:
        """Whether a path can be added: a text or number, or an element of unknown shape, which no long list is."""
        return shape == SCALAR or (shape is None and self._tokens[first].value not in self._declared)

    def _is_scalar_from(self, at: int) -> bool:
        if not self._is_name(at):
            return at < len(self._tokens) and self._tokens[at].kind in ("text", "number")
        if self._is(at + 1, "("):
            return self._tokens[at].value != "dyn"
        shape, end = self._path_from(at)
        return self._is(end + 1, ".") or (self._is_scalar(at, shape) and not self._is(end + 1, "["))

    def _count_steps(self, opened: int) -> None:
        """Count the steps of a comprehension over what is written out, whose bracket opens here."""
        closed = opened - 3
        length, body = closed - self._pairs.get(closed, closed), self._pairs.get(opened, opened) - opened
        self.steps += length * body
        if self.steps > _STEPS_LIMIT:
            refuse_filter(self._text, "a long list is gone through with a long condition: write less of either")

    def _check_path(self, at: int) -> FilterShape:
        """The shape at the end of a path of names that begins at a token; None behind an element of it, too."""
        shape, end = self._path_from(at)
        return None if self._is(end + 1, "[") else shape

    def _path_from(self, at: int) -> tuple[FilterShape, int]:
        """The shape at the end of a path of names, before any index, and its last token."""
        path = [self._tokens[at].value]
        shape = self._shape_of(path[0])
        while self._is(at + 1, ".") and self._is_name(at + 2) and not self._is(at + 3, "("):
            at, name = at + 2, self._tokens[at + 2].value
            path.append(name)
            if isinstance(shape, ListShape) or (shape is not None and name not in shape):
                known = (
                    f"{'.'.join(path[:-1])} has {', '.join(sorted(shape)) or 'no fields'}"
                    if isinstance(shape, Mapping)
                    else "it is a list"
                )
                refuse_filter(self._text, f"{'.'.join(path)!r} is not declared: {known}")
            shape = shape[name] if isinstance(shape, Mapping) else None
        return shape, at

    def _shape_of(self, name: str) -> FilterShape:
        for scope in reversed(self._scopes):
            if scope.variable == name:
                return scope.shape
        if name not in self._declared:
            refuse_filter(self._text, f"{name!r} is not declared: there are {', '.join(sorted(self._declared))}")
        return self._declared[name]

    def _opened(self, at: int) -> _Scope:
        """The scope of a bracket: that of a comprehension where it is one."""
        if not (self._is_name(at - 1) and self._is(at - 2, ".") and self._tokens[at - 1].value in MACROS):
            return _Scope()
        if not (self._is_name(at + 1) and self._is(at + 2, ",")):
            macro = self._tokens[at - 1].value
            refuse_filter(self._text, f"{macro} is given a name for an element and a condition, such as {macro}(x, x == 'a')")
        variable = self._tokens[at + 1].value
        if variable in self._declared or any(scope.variable == variable for scope in self._scopes):
            refuse_filter(self._text, f"{variable!r} has a meaning already: give the element another name")
        first = at - 3
        while self._is(first - 1, ".") and self._is_name(first) and self._is_name(first - 2):
            first -= 2
        is_path = self._is_name(first) and not self._is(first - 1, ".")
        enclosing = self._variable
        if enclosing is not None and not (is_path and self._tokens[first].value == enclosing):
            refuse_filter(
                self._text,
                f"within a comprehension over {enclosing!r}, another one ranges over {enclosing!r} or its fields alone",
            )
        if not is_path:
            self._count_steps(at)
        shape = self._check_path(first) if is_path else None
        return _Scope(variable, shape.element if isinstance(shape, ListShape) else None)

    def _is_new_variable(self, at: int) -> bool:
        return (
            self._is(at - 1, "(")
            and bool(self._scopes)
            and self._scopes[-1].variable == self._tokens[at].value
            and self._is(at + 1, ",")
        )

    def _check_pattern(self, at: int) -> None:
        is_quoted = at + 3 < len(self._tokens) and self._tokens[at + 2].kind == "text" and self._is(at + 3, ")")
        if not is_quoted:
            refuse_filter(self._text, "matches takes a regular expression in quotes")
        self._pattern_micros += pattern_micros(self._tokens[at + 2].value)
        if self._pattern_micros > _PATTERN_LIMIT:
            pattern = _shown(self._tokens[at + 2].value)
            refuse_filter(
                self._text, f"the regular expression {pattern} takes too long: there is too much of it, or it repeats too much"
            )

    def _is_behind_value(self, at: int) -> bool:
        return at > 0 and (self._tokens[at - 1].kind in ("name", "text") or self._is(at - 1, ")", "]"))

    def _is(self, at: int, *signs: str) -> bool:
        return 0 <= at < len(self._tokens) and self._tokens[at].is_sign(*signs)

    def _is_name(self, at: int) -> bool:
        return 0 <= at < len(self._tokens) and self._tokens[at].kind == "name"

    def _is_word(self, at: int, word: str) -> bool:
        return self._is_name(at) and self._tokens[at].value == word


def _bracket_pairs(tokens: Sequence[FilterToken]) -> Mapping[int, int]:
    """Where the bracket stands that belongs to one, for both of each pair."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.is_sign("(", "["):
            opened.append(at)
        elif token.is_sign(")", "]") and opened:
            pairs[at] = opened.pop()
            pairs[pairs[at]] = at
    return pairs


def _is_whole(shape: FilterShape, *, is_declared: bool, length: int) -> bool:
    """Whether a path names a list or an object. Of what is unknown, a declared field does, and what is below one does not."""
    return isinstance(shape, ListShape) or bool(shape) or (shape is None and is_declared and length <= 1)


def named_fields(tokens: Sequence[FilterToken], root: str, *, within: frozenset[str] = frozenset()) -> frozenset[str] | None:
    """The fields of a variable, or of the elements of a list, that a filter names; None where it may use the others, too.

    within        the variables of the comprehensions around it
    """
    if root in within:  # two comprehensions have the name, each within one of another name
        return None
    fields: set[str] = set()
    for at, token in enumerate(tokens):
        if token.kind != "name" or token.value != root or _is_member(tokens, at) or _is_declaration(tokens, at):
            continue
        following = tokens[at + 1 : at + 5]
        if len(following) < 2 or not following[0].is_sign("."):
            return None
        inner: frozenset[str] | None = frozenset({following[1].value})
        if following[1].value in MACROS:
            inner = named_fields(tokens, following[3].value, within=within | {root}) if len(following) == 4 else None
        if inner is None:
            return None
        fields |= inner
    return frozenset(fields)


def _is_member(tokens: Sequence[FilterToken], at: int) -> bool:
    return at > 0 and tokens[at - 1].is_sign(".")


def _is_declaration(tokens: Sequence[FilterToken], at: int) -> bool:
    """True where a comprehension names its variable."""
    is_first = at > 1 and tokens[at - 1].is_sign("(") and tokens[at - 2].value in MACROS
    return is_first and at + 1 < len(tokens) and tokens[at + 1].is_sign(",")


_PATTERN_LIMIT = 1000
"""For all patterns of a filter: every evaluation compiles them."""
_PIECE = re.compile(
    r"\{(?P<least>[0-9]+)(?:,(?P<most>[0-9]*))?\}|(?P<wide>\\[pPuUxX])|(?P<class>\\[WDSwdsbB])|(?P<any>\.|\[\^)|\(\?(?P<flags>[a-zA-Z]+)|\\?.",
    re.DOTALL,
)


def pattern_micros(pattern: str) -> int:
    """Estimate how many microseconds the library takes to compile a pattern."""
    cost, factor = 0, 1
    for piece in _PIECE.finditer(ascii_pattern(pattern)):
        if piece["least"]:
            factor *= max(1, *(int(number) for number in (piece["least"], piece["most"]) if number))
        if piece["flags"] and "i" in piece["flags"]:
            factor *= 3
        cost += 400 if piece["wide"] else 100 if piece["class"] else 10 if piece["any"] else 1
    return cost * factor


_CLASSES = {"w": "0-9A-Za-z_", "d": "0-9", "s": r"\t\n\f\r "}
_CLASS_PIECE = re.compile(r"\\(.)|(\[\^?\]?)|(\])|.", re.DOTALL)


def ascii_pattern(pattern: str) -> str:
    r"""A pattern with ``\w``, ``\d`` and ``\s`` as CEL means them: for ASCII alone. The library takes all of Unicode, and a millisecond."""
    is_in_class, pieces = False, []
    for piece in _CLASS_PIECE.finditer(pattern):
        letters = _CLASSES.get((piece[1] or "").lower())
        is_negated = bool(piece[1]) and piece[1].isupper()
        if letters is None or (is_in_class and is_negated):
            pieces.append(piece[0])
        else:
            pieces.append(letters if is_in_class else f"[{'^' if is_negated else ''}{letters}]")
        is_in_class = not piece[3] and (is_in_class or bool(piece[2]))
    return "".join(pieces)


def split_conjuncts(tokens: Sequence[FilterToken]) -> list[Sequence[FilterToken]]:
    """The parts of a filter that all have to be true: what stands between its outermost ``&&``. The whole filter where there is none."""
    depth, start, parts = 0, 0, []
    for at, token in enumerate(tokens):
        depth += token.is_sign("(", "[") - token.is_sign(")", "]")
        if depth == 0 and token.is_sign("||", "?"):
            return [tokens]
        if depth == 0 and token.is_sign("&&"):
            parts.append(tokens[start:at])
            start = at + 1
    return [*parts, tokens[start:]]


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:197] + "...")
