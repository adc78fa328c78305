"""Which steps of a plan still make sense after one of them failed: those that need nothing of what it was to bring about.

So a Secret that stands in the way of one principal keeps neither the others from having theirs, nor garbage from being collected.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.errors import HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.reconcile import access_actions as access
from headwater.reconcile.actions import (
    CancelTask,
    DeclarePolicies,
    Effect,
    RecordHandled,
    RecordImported,
    RotateCredentials,
    RunTaskNow,
    SubmitTask,
)
from headwater.reconcile.manifests import ROTATE_CREDENTIALS, ROTATE_PRINCIPAL, RUN_NOW

_WHOLE = "the realm or catalog itself"
_ACCESS, _RECORD = "access", "the record of access"
_WITH_CREDENTIALS = (
    *(RotateCredentials, access.ProvidePrincipal, access.ProvideConnection, access.RotatePrincipal),
    *(access.RetirePrincipal, access.RetireConnection, access.RemoveCredentials, access.RemoveConnection),
)


@dataclass(slots=True)
class StepFailures:
    """The failures of a plan's steps so far."""

    errors: list[HeadwaterError] = field(default_factory=list)
    _broken: set[str] = field(default_factory=set)

    def note(self, effect: Effect, error: HeadwaterError) -> None:
        """Note that a step failed.

        raises        the error itself where the other steps would fail in the same way: the store does not answer
        """
        is_of_store = isinstance(error, UnavailableError) and not isinstance(effect, _WITH_CREDENTIALS)
        if is_of_store or isinstance(error, UnknownOutcomeError):
            raise error
        self.errors.append(error)
        self._broken |= _breaks(effect)

    def is_in_vain(self, effect: Effect) -> bool:
        """Whether a step needs what a failed one was to bring about."""
        return bool(self._broken & {_WHOLE, *_needs(effect)})


def _needs(effect: Effect) -> set[str]:
    match effect:
        case access.RecordAccess():
            return {_ACCESS, _RECORD}
        case RecordHandled(annotation, _):
            return {annotation}
        case access.AssignPrincipalRole(principal, role) | access.UnassignPrincipalRole(principal, role):
            return {_ACCESS, _principal(principal), _role(role)}
        case access.AssignCatalogRole(role, principal_role) | access.UnassignCatalogRole(role, principal_role):
            return {_ACCESS, _catalog_role(role), _role(principal_role)}
    about = _about(effect)
    return about | {_ACCESS} if about and not isinstance(effect, SubmitTask | RunTaskNow | CancelTask) else about


def _breaks(effect: Effect) -> set[str]:
    match effect:
        case access.RecordAccess():
            return {_ACCESS}
        case RotateCredentials():
            return {ROTATE_CREDENTIALS}
        case access.RotatePrincipal(principal, _, _):
            return {_principal(principal), ROTATE_PRINCIPAL, ROTATE_CREDENTIALS}
        case SubmitTask() | RunTaskNow() | CancelTask():
            return {*_about(effect), RUN_NOW}
        case RecordHandled() | RecordImported() | DeclarePolicies():
            return set()
        case (
            access.AssignPrincipalRole()
            | access.UnassignPrincipalRole()
            | access.AssignCatalogRole()
            | access.UnassignCatalogRole()
        ):
            return {_RECORD}
    about = _about(effect)
    return {*about, _RECORD} if about else {_WHOLE}


def _about(effect: Effect) -> set[str]:
    """What a step brings about, apart from the realm or catalog itself."""
    match effect:
        case access.ProvidePrincipal(principal) | access.EnablePrincipal(principal) | access.DisablePrincipal(principal):
            return {_principal(principal)}
        case (
            access.RetirePrincipal(principal, _) | access.RemoveCredentials(principal) | access.RotatePrincipal(principal, _, _)
        ):
            return {_principal(principal)}
        case access.ProvideConnection(form) | access.RetireConnection(form, _) | access.RemoveConnection(form):
            return {_principal(form.principal)}
        case (
            access.CreatePrincipalRole(role)
            | access.DropPrincipalRole(role)
            | access.GrantOnRealm(role, _)
            | access.RevokeOnRealm(role, _)
        ):
            return {_role(role)}
        case (
            access.CreateCatalogRole(role)
            | access.DropCatalogRole(role)
            | access.GrantInCatalog(role, _)
            | access.RevokeInCatalog(role, _)
        ):
            return {_catalog_role(role)}
        case SubmitTask(kind, _, subject, _):
            return {f"task {kind} {subject}"}
        case RunTaskNow(_, kind):
            return {f"task {kind} "}
        case CancelTask(_, kind, subject):
            return {f"task {kind} {subject}"}
    return set()


def _principal(name: str) -> str:
    return f"principal {name}"


def _role(name: str) -> str:
    return f"role {name}"


def _catalog_role(name: str) -> str:
    return f"role {name} of the catalog"
