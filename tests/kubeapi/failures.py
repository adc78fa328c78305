"""What the server answers when it can't do as asked: a Status, in the words of a real one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kubeapi.causes import Cause

if TYPE_CHECKING:
    from kubeapi.kinds import Kind

__all__ = ["Failure", "NotServed", "status_of"]


class NotServed(Exception):
    """The path leads nowhere: the one answer that is plain text."""


class Failure(Exception):
    """A request that is answered with a Status of a failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers: dict[str, str] = {}
        self.status = status_of(code, reason, message, details=details, metadata=metadata)
        if details and "retryAfterSeconds" in details:
            self.headers["Retry-After"] = str(details["retryAfterSeconds"])

    @classmethod
    def missing(cls, kind: Kind, name: str) -> Failure:
        return cls(404, "NotFound", f'{kind.resource} "{name}" not found', details=_details(kind, name, kind.plural))

    @classmethod
    def exists(cls, kind: Kind, name: str) -> Failure:
        return cls(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', details=_details(kind, name, kind.plural))

    @classmethod
    def conflict(cls, kind: Kind, name: str, why: str) -> Failure:
        message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
        return cls(409, "Conflict", message, details=_details(kind, name, kind.plural))

    @classmethod
    def stale(cls, kind: Kind, name: str) -> Failure:
        return cls.conflict(
            kind, name, "the object has been modified; please apply your changes to the latest version and try again"
        )

    @classmethod
    def precondition(cls, kind: Kind, name: str, why: str) -> Failure:
        """A real server names the kind here, where it names the resource elsewhere."""
        message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
        return cls(409, "Conflict", message, details=_details(kind, name, kind.kind))

    @classmethod
    def invalid(
        cls, kind: Kind, name: str, causes: Iterable[Cause], *, called: str | None = None, plural: bool = False
    ) -> Failure:
        """``called``: how the object itself calls its kind, which may be wrong. With ``plural`` the resource is named."""
        if kind.renamed:
            kind = replace(kind, group="")  # whatever an Event is sent as, it is one of the core group
        named = called or kind.kind
        qualified = kind.resource if plural else f"{named}.{kind.group}" if kind.group else named
        details = _details(kind, name, kind.plural if plural else named)
        return cls.of_causes(f'{qualified} "{name}" is invalid', details, causes)

    @classmethod
    def of_causes(cls, start: str, details: dict[str, Any], causes: Iterable[Cause]) -> Failure:
        """``causes`` are told once each in the message, and all of them in the details."""
        found = list(causes)
        told = list(dict.fromkeys(map(str, found)))
        shown = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
        listed = [{"reason": one.reason, "message": one.message, "field": one.field} for one in found]
        return cls(422, "Invalid", f"{start}: {shown}", details=details | {"causes": listed})

    @classmethod
    def of_options(cls, kind: str, cause: Cause) -> Failure:
        """What is wrong with the options of a request: ``kind`` is ListOptions, CreateOptions, and so on."""
        return cls.of_causes(f'{kind}.meta.k8s.io "" is invalid', {"group": "meta.k8s.io", "kind": kind}, [cause])

    @classmethod
    def uid_precondition(cls, kind: Kind, key: tuple[str, str], wanted: str, found: str) -> Failure:
        """An update with the uid of an object that is not there: it is gone (``found`` is empty then), or another one is."""
        place = "/".join(filter(None, ("/registry", kind.group if kind.is_custom else "", kind.plural, *key)))
        why = (
            f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        )
        return cls.conflict(kind, key[1], why)

    @classmethod
    def bad_request(cls, message: str) -> Failure:
        return cls(400, "BadRequest", message)

    @classmethod
    def rejected_patch(cls) -> Failure:
        """A JSON patch whose test fails, or whose path leads nowhere."""
        return cls(422, "Invalid", "the server rejected our request due to an error in our request", details={})

    @classmethod
    def forbidden(cls, kind: Kind, name: str, why: str, causes: list[dict[str, str]] | None = None) -> Failure:
        details = _details(kind, name, kind.plural) | ({"causes": causes} if causes else {})
        return cls(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}', details=details)

    @classmethod
    def not_allowed(cls, message: str = "the server does not allow this method on the requested resource") -> Failure:
        return cls(405, "MethodNotAllowed", message, details={})

    @classmethod
    def unsupported_media(cls, accepted: Iterable[str]) -> Failure:
        told = ", ".join(accepted)
        message = f"the body of the request was in an unknown format - accepted media types include: {told}"
        return cls(415, "UnsupportedMediaType", message)

    @classmethod
    def internal(cls, message: str) -> Failure:
        """An error without a reason, as a real server tells what went wrong inside of it."""
        return cls(500, "", message)

    @classmethod
    def expired(cls, message: str, metadata: dict[str, Any] | None = None) -> Failure:
        return cls(410, "Expired", message, metadata=metadata)

    @classmethod
    def too_many(cls, seconds: int) -> Failure:
        message = "the server has received too many requests and has asked us to try again later"
        return cls(429, "TooManyRequests", message, details={"retryAfterSeconds": seconds})


def status_of(
    code: int,
    reason: str,
    message: str,
    *,
    details: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata or {}, "status": "Failure"}
    status["message"] = message
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return status


def _details(kind: Kind, name: str, called: str) -> dict[str, Any]:
    return ({"name": name} if name else {}) | ({"group": kind.group} if kind.group else {}) | {"kind": called}
