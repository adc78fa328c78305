"""What a survey says about one table directory: found, with the evidence, or quarantined, with the reason."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from headwater.errors import UnreadableError

__all__ = ["Found", "Outcome", "QuarantineCode", "Quarantined", "Rule", "UnfitError"]


class QuarantineCode(StrEnum):
    """Why a table is not imported. The words are a contract: reports, status and the command line show them."""

    NO_METADATA = "NoMetadata"
    AMBIGUOUS = "Ambiguous"
    HINT_AHEAD = "HintAhead"
    TWO_TABLES = "TwoTables"
    VANISHED = "Vanished"
    NO_ACCESS = "NoAccess"
    TOO_LARGE = "TooLarge"
    UNKNOWN_CODEC = "UnknownCodec"
    CORRUPT = "Corrupt"
    IS_VIEW = "IsView"
    IS_DELTA = "IsDelta"
    UNSUPPORTED_VERSION = "UnsupportedVersion"
    INVALID = "Invalid"
    INCONSISTENT = "Inconsistent"
    LOCATION_MISMATCH = "LocationMismatch"
    OUTSIDE_ALLOWED = "OutsideAllowed"
    BAD_KEY = "BadKey"
    BAD_LOCATION = "BadLocation"
    DUPLICATE_KEY = "DuplicateKey"
    DUPLICATE_UUID = "DuplicateUuid"
    NESTED = "Nested"
    CLAIMED = "Claimed"
    KEY_TAKEN = "KeyTaken"
    DIFFERS = "Differs"
    NOT_FORWARD = "NotForward"


class Rule(StrEnum):
    """Which rule decided that a metadata file is the latest."""

    ONLY_FILE = "only file"
    VERSION_HINT = "version hint"
    ROLLED_FORWARD = "version hint, rolled forward"
    HIGHEST_NUMBER = "highest number"
    METADATA_LOG = "metadata log"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A table that can be imported.

    key           folders below the import location, the table's name last; kept as they are (also a trailing ``.db``)
    uuid          None for a table of format version 1 that has none
    snapshot_id   None for a table without a current snapshot
    log           metadata files before this one, oldest first, as the table's own metadata log has them
    evidence      sentences on what was seen when the file was chosen
    """

    directory: str
    key: tuple[str, ...]
    metadata_location: str
    uuid: str | None
    format_version: int
    snapshot_id: int | None
    schema_id: int
    spec_id: int
    sort_order_id: int
    log: tuple[str, ...]
    rule: Rule
    evidence: tuple[str, ...]


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A table directory that is left alone; ``message`` names the file and what to do."""

    directory: str
    key: tuple[str, ...]
    code: QuarantineCode
    message: str


Outcome = Found | Quarantined


class UnfitError(UnreadableError):
    """Within these rules: the table at hand is for quarantine, with this code."""

    def __init__(self, code: QuarantineCode, message: str) -> None:
        super().__init__(message)
        self.code = code
