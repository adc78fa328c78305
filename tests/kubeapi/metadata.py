"""What may stand in an object's metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubeapi.causes import Cause

__all__ = ["faults_of_change", "faults_of_metadata", "warnings_of_finalizers"]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_QUALIFIED})?"
MOST_ANNOTATION_BYTES = 262144
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")

_NAME_RULES = {
    "subdomain": (
        _SUBDOMAIN,
        253,
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
        f"with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')",
    ),
    "label": (
        _LABEL,
        63,
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
        f"alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')",
    ),
    "service": (
        "[a-z]([-a-z0-9]*[a-z0-9])?",
        63,
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
        "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
        "'[a-z]([-a-z0-9]*[a-z0-9])?')",
    ),
    "any": (".*", 65535, ""),
    "path": ("[^/%]+", 65535, "may not contain '/' or '%'"),
}
_KEY_TELLS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_VALUE_TELLS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    f"an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)


def faults_of_metadata(metadata: Mapping[str, Any], name_rule: str) -> Iterator[Cause]:
    name = metadata.get("name") or ""
    if not name:
        yield Cause.required("metadata.name", "name or generateName is required")
    else:
        yield from _faults_of_name(name, name_rule)
    labels = metadata.get("labels") or {}
    for key, value in labels.items():
        yield from _faults_of_key(key, "metadata.labels")
        if len(value) > 63:
            yield Cause.invalid("metadata.labels", value, "must be no more than 63 bytes")
        if not re.fullmatch(_VALUE, value):
            yield Cause.invalid("metadata.labels", value, _VALUE_TELLS)
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        yield from _faults_of_key(key.lower(), "metadata.annotations")
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MOST_ANNOTATION_BYTES:
        yield Cause.too_long("metadata.annotations", MOST_ANNOTATION_BYTES)
    for number, owner in enumerate(metadata.get("ownerReferences") or ()):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield Cause.invalid(f"metadata.ownerReferences[{number}].{field}", owner.get(field) or "", "must not be empty")
    for finalizer in metadata.get("finalizers") or ():
        yield from _faults_of_key(finalizer, "metadata.finalizers")


def faults_of_change(metadata: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    """What may not change. A real server looks at it twice, and tells it twice."""
    if metadata.get("uid") not in (None, "", old["uid"]):
        yield from [Cause.invalid("metadata.uid", metadata["uid"], "field is immutable")] * 2
    if old.get("deletionTimestamp"):
        new = sorted(set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if new:
            told = ", ".join(f'"{one}"' for one in new)
            message = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{told}}}"
            yield from [Cause.forbidden("metadata.finalizers", message)] * 2
    elif metadata.get("deletionTimestamp"):
        yield from [Cause.invalid("metadata.deletionTimestamp", metadata["deletionTimestamp"], "field is immutable")] * 2


def warnings_of_finalizers(metadata: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[str]:
    """What is said of new finalizers without a domain, which are let in all the same."""
    for name in sorted(set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ()) - set(STANDARD_FINALIZERS)):
        if "/" not in name:
            why = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
            yield f'metadata.finalizers: "{name}": {why}'


def _faults_of_name(name: str, rule: str) -> Iterator[Cause]:
    pattern, most, tells = _NAME_RULES[rule]
    if len(name) > most:
        yield Cause.invalid("metadata.name", name, f"must be no more than {most} characters")
    if not re.fullmatch(pattern, name) or name in (".", ".."):
        yield Cause.invalid("metadata.name", name, tells)


def _faults_of_key(key: str, field: str) -> Iterator[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not re.fullmatch(_SUBDOMAIN, prefix):
        yield Cause.invalid(field, key, f"prefix part {_NAME_RULES['subdomain'][2]}")
    if len(name) > 63:
        yield Cause.invalid(field, key, "name part must be no more than 63 bytes")
    if not re.fullmatch(_QUALIFIED, name):
        yield Cause.invalid(field, key, _KEY_TELLS)
