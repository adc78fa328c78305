"""The refusal of what a caller may not do, where the caller may know that it is there."""

from __future__ import annotations

from headwater.access.access_rules import ReferenceName, Securable
from headwater.access.privileges import Privilege
from headwater.errors import RefusedError


class ForbiddenError(RefusedError):
    """A caller lacks a privilege. Trying again changes nothing; a grant does."""

    @classmethod
    def lacking(cls, privilege: Privilege, on: Securable, reference: ReferenceName) -> ForbiddenError:
        where = "" if reference.is_default else f" on {reference.name or 'a commit that only its hash names'}"
        return cls(f"this needs {privilege} on {on}{where}, which was not granted: ask whoever manages its grants")
