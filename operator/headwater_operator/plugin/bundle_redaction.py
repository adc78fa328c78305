"""Redaction: remove secrets from what leaves the cluster. Pure, and in doubt it removes too much.

Three filters, one after the other: values that stand under a name which sounds secret; texts that look like a secret (passwords in URLs,
tokens, keys, whatever follows a word such as ``password=``); and every value that one of these found, wherever else it stands.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from headwater.redaction import URL_LOGIN

REDACTED = "(redacted)"

_WORDS = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret|token|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|account[-_.]?key|"
    r"shared[-_.]?key|encryption[-_.]?key|master[-_.]?key|signature|signing|\bsas|sas[-_.]|\bsig\b|auth|cookie|conn(?:ection)?[-_.]?str|\bdsn\b|jwt|bearer"
)
_SECRET_NAME = re.compile(rf"{_WORDS}|[-_.]key$|[-_.]pin$", re.IGNORECASE)
_HARMLESS_NAMES = frozenset(
    {
        "automountServiceAccountToken",
        "credentialsSecret",
        "imagePullSecrets",
        "secretKeyRef",
        "secretName",
        "secretRef",
        "serviceAccountToken",
    }
)
_KEPT_ANNOTATIONS = re.compile(r"([a-z0-9-]+\.)*(headwater\.dev|kubernetes\.io|k8s\.io|helm\.sh|prometheus\.io)/")
_COPIES = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
COMMON_WORDS = frozenset(
    {"default", "headwater", "operator", "password", "secret", "true", "false", "worker", "admin", "postgres"}
)
_LEAST_LENGTH = 6

_LOGIN = re.compile(r"(?<![\w/.:-])([\w.%+-]+):([^\s:@/\"']+)@(?!sha256:)(?=[\w.-]+)")
_NAMED = re.compile(
    rf"([\w.\-/]*(?:{_WORDS})[\w.\-]*\\*[\"']?\s*(?:=>|[:=])\s*)(?!//|\(redacted\))(\\*\"[^\"]*\"|'[^']*'|[^\s,;&\"'}}\])\\]+)",
    re.IGNORECASE,
)
_SPOKEN = re.compile(r"(\b(?:password|passphrase|passwd)\s+(?:is\s+|was\s+)?)(\"[^\"]+\"|'[^']+')", re.IGNORECASE)
_FLAG = re.compile(r"((?:^|\s)--?[\w.-]+)(\s+)([^\s-]\S*)")
_PLAIN_LOGIN = re.compile(r"://[^\s/@:]*:([^\s@/]+)@")
_SCHEMES = re.compile(r"\b(bearer|basic|negotiate)\s+[A-Za-z0-9+/=._~-]{6,}", re.IGNORECASE)
_SHAPES = (
    re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL),
    re.compile(r"\beyJ[\w-]+\.[\w-]+\.?[\w-]*"),
    re.compile(r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|AGPA|AIDA|AROA)[A-Z0-9]{12,}\b"),
    re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|dapi|AIza|ya29\.)[\w.-]{10,}"),
    re.compile(r"(?<![A-Za-z0-9/+=])(?=[^\s]*[A-Z])(?=[^\s]*[a-z])(?=[^\s]*[0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"),
)
_RANDOM = re.compile(r"[A-Za-z0-9+_=-]{20,}")
_Replacement = str | Callable[[re.Match[str]], str]


def sounds_secret(name: str) -> bool:
    """Whether a value under this name is redacted unread."""
    return name not in _HARMLESS_NAMES and _SECRET_NAME.search(name) is not None


class Redactor:
    """Learns secrets from everything (`learn`), then cleans everything: a value learned in one place is removed from all."""

    def __init__(self) -> None:
        self.count = 0
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def learn(self, value: Any) -> None:
        """Remember the secrets of a plain value, or of a text."""
        for secret in _secrets(value):
            self._remember(secret)
        self._pattern = None

    def clean(self, value: Any, name: str = "") -> Any:
        """The value without its secrets. ``name`` is the key that it is under."""
        if isinstance(value, Mapping):
            return {self.name(key): self._member(key, inner, value, name) for key, inner in value.items() if key not in _COPIES}
        if isinstance(value, list | tuple):
            flags = ["", *value]
            return [
                self._wiped(inner) if _is_secret_flag(flag) else self.clean(inner, name)
                for flag, inner in zip(flags, value, strict=False)
            ]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        """A text without secrets. JSON is parsed and cleaned as a value."""
        if (plain := _as_json(text)) is not None:
            return json.dumps(self.clean(plain), ensure_ascii=False)
        rules: tuple[tuple[re.Pattern[str] | None, _Replacement], ...] = (
            (self._learnt(), REDACTED),
            *((shape, REDACTED) for shape in _SHAPES),
            *_RULES,
        )
        for pattern, replacement in rules:
            if pattern is not None:
                text = self._replaced(pattern, replacement, text)
        return self._replaced(_RANDOM, lambda match: REDACTED if _is_random(match[0]) else match[0], text)

    def name(self, name: str) -> str:
        """A name that is not meant to be secret: only learned values are removed from it."""
        pattern = self._learnt()
        return name if pattern is None else self._replaced(pattern, REDACTED, name)

    def has_secret(self, text: str) -> bool:
        """Whether a text that is about to leave has a learned secret."""
        pattern = self._learnt()
        return pattern is not None and pattern.search(text) is not None

    def _member(self, key: str, inner: Any, whole: Mapping[str, Any], name: str) -> Any:
        is_variable = name == "env" and key == "value"
        is_named = key == "value" and sounds_secret(str(whole.get("name", "")))
        is_foreign = name == "annotations" and not _KEPT_ANNOTATIONS.match(key)
        is_volume = isinstance(inner, Mapping) and "secretName" in inner
        if is_variable or is_named or is_foreign or (sounds_secret(key) and not is_volume):
            return self._wiped(inner)
        return self.clean(inner, key)

    def _wiped(self, value: Any) -> Any:
        """Replace every value in a structure; true, false and null reveal nothing and stay."""
        if isinstance(value, Mapping):
            return {key: self._wiped(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._wiped(inner) for inner in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        self.count += 1
        return REDACTED

    def _replaced(self, pattern: re.Pattern[str], replacement: _Replacement, text: str) -> str:
        changed = pattern.sub(replacement, text)
        self.count += changed != text
        return changed

    def _remember(self, secret: str) -> None:
        plain = secret.strip().strip("\\\"'")
        if len(plain) < _LEAST_LENGTH or plain.lower() in COMMON_WORDS or plain == REDACTED:
            return
        encoded = base64.b64encode(plain.encode()).decode()
        escaped = json.dumps(plain)[1:-1]
        self._known |= {plain, quote(plain, safe=""), quote_plus(plain), unquote(plain), encoded, encoded.rstrip("="), escaped}

    def _learnt(self) -> re.Pattern[str] | None:
        if self._pattern is None and self._known:
            longest_first = sorted(self._known, key=lambda secret: (-len(secret), secret))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        return self._pattern


def _secrets(value: Any) -> Iterator[str]:
    """The certain secrets of a text: under a secret name, in a URL, or after a secret word."""
    if isinstance(value, Mapping):
        is_named = sounds_secret(str(value.get("name", "")))
        for key, inner in value.items():
            yield from _leaves(inner) if sounds_secret(str(key)) or (key == "value" and is_named) else _secrets(inner)
    elif isinstance(value, list | tuple):
        for flag, inner in zip(["", *value], value, strict=False):
            yield from _leaves(inner) if _is_secret_flag(flag) else _secrets(inner)
    elif isinstance(value, str):
        yield from _secrets_of_text(value)


def _secrets_of_text(text: str) -> Iterator[str]:
    if (plain := _as_json(text)) is not None:
        yield from _secrets(plain)
        return
    for match in URL_LOGIN.finditer(text):
        yield match[2].partition(":")[2]
    for pattern, place in ((_PLAIN_LOGIN, 1), (_LOGIN, 2), (_SPOKEN, 2)):
        yield from (match[place] for match in pattern.finditer(text))
    # "token: expired" is no secret, and would be missed everywhere else
    yield from (match[2] for match in _NAMED.finditer(text) if any(map(str.isdigit, match[2])))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str):
        yield value
        yield from value.splitlines()
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)


def _is_random(text: str) -> bool:
    """Whether a word looks random: capitals, small letters and digits together. Ids, uids and digests have no capitals."""
    return all(any(test(letter) for letter in text) for test in (str.isupper, str.islower, str.isdigit))


def _is_secret_flag(value: Any) -> bool:
    """Whether this is a command-line option whose value follows it."""
    return isinstance(value, str) and value.startswith("-") and "=" not in value and sounds_secret(value)


def _as_json(text: str) -> dict[str, Any] | list[Any] | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


_RULES: tuple[tuple[re.Pattern[str], _Replacement], ...] = (
    (URL_LOGIN, rf"\1{REDACTED}@"),
    (_LOGIN, rf"\1:{REDACTED}@"),
    (_SCHEMES, rf"\1 {REDACTED}"),
    (_SPOKEN, rf"\1{REDACTED}"),
    (_NAMED, rf"\1{REDACTED}"),
    (_FLAG, lambda match: f"{match[1]}{match[2]}{REDACTED if _is_secret_flag(match[1].strip()) else match[3]}"),
)
