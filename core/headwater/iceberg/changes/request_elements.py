"""Elements of a request: each is read as the shape that its own word for itself names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from headwater.iceberg.changes.change_errors import ChangeFormError
from headwater.iceberg.spec import FaultError
from headwater.iceberg.spec.document_shape import JsonRecord, find_faults, shown_value
from headwater.typed_values import convert

Element = Mapping[str, Any]

S = TypeVar("S", bound=JsonRecord)


def read_element(element: Any, shapes: Mapping[str, type[JsonRecord]], tag: str, where: str) -> JsonRecord:
    """Read an update or a requirement; fields that its shape does not name are ignored.

    shapes        by the word that stands in the field ``tag``
    where         the element's place in the request: ``updates[3]``
    raises        ChangeFormError for an unknown word, and for the first place that is not of its shape
    """
    if not isinstance(element, Mapping):
        raise ChangeFormError(f"The request has {where} {shown_value(element)}, which is not an object", path=where)
    word = element.get(tag)
    shape = shapes.get(word) if isinstance(word, str) else None
    if shape is None:
        known = ", ".join(sorted(shapes))
        raise ChangeFormError(
            f"The request has {where}.{tag} {shown_value(word)}, which is not one of {known}", path=f"{where}.{tag}"
        )
    return read_shape(element, shape, where)


def read_shape(value: Any, shape: type[S], where: str) -> S:
    """Convert a part of a request to its shape; raises ChangeFormError with the first place that differs."""
    try:
        return convert(value, shape)
    except msgspec.ValidationError as error:
        fault = next(find_faults(value, shape, where))
        raise ChangeFormError(f"The request {fault.error()}", path=fault.path) from error


@contextmanager
def form_faults(where: str) -> Iterator[None]:
    """Turn what the specification's rules say of a part of a request into a ChangeFormError."""
    try:
        yield
    except FaultError as fault:
        raise ChangeFormError(f"The request {fault}", path=where) from fault
