"""Why a file stays or may go, and why a whole place yields nothing: one code for each rule, with its sentence for people."""

from __future__ import annotations

from enum import StrEnum


class PlaceReason(StrEnum):
    """Why no file of a place is a candidate, whatever else is known of it."""

    GUEST = "GuestTable"
    POLICY_OFF = "CollectionOff"
    GC_DISABLED = "GcDisabled"
    REFERRER_UNREADABLE = "ReferrerUnreadable"
    REFERRER_ENCRYPTED = "ReferrerEncrypted"
    REFERRER_TOO_NEW = "ReferrerTooNew"
    WRITTEN_ELSEWHERE = "WrittenElsewhere"
    LIVE_NOT_LISTED = "LiveNotListed"
    LISTING_INCOMPLETE = "ListingIncomplete"
    MARKER_DIFFERS = "MarkerDiffers"
    PLACE_SHARED = "PlaceShared"


class FileReason(StrEnum):
    """What is to be said of one file in a place that yields candidates."""

    LIVE = "Live"
    LOOSELY_LIVE = "LooselyLive"
    OWN_FILE = "OwnFile"
    TIME_UNKNOWN = "TimeUnknown"
    NEVER_HELD = "NeverHeld"
    UNKNOWN_KIND = "UnknownKind"
    TAKEN_UP = "TakenUp"
    IN_GRACE = "InGrace"
    MARKED = "Marked"
    DUE = "Due"


PLACE_SENTENCES = {
    PlaceReason.GUEST: "its table is a guest: another system may write it; adopt it with `headwater table adopt`",
    PlaceReason.POLICY_OFF: "the policy of its catalog or table says that its files are not looked at",
    PlaceReason.GC_DISABLED: "a table that refers to it has gc.enabled=false",
    PlaceReason.REFERRER_UNREADABLE: "a file that may refer to it cannot be read",
    PlaceReason.REFERRER_ENCRYPTED: "a table that may refer to it is encrypted",
    PlaceReason.REFERRER_TOO_NEW: "a table that may refer to it has a format version that this release does not know",
    PlaceReason.WRITTEN_ELSEWHERE: "something else writes there: metadata that this store neither wrote nor knew",
    PlaceReason.LIVE_NOT_LISTED: "its listing lacks a file that is live",
    PlaceReason.LISTING_INCOMPLETE: "a folder of it may not be listed",
    PlaceReason.MARKER_DIFFERS: "its marker object is of another store, or of another run than this store remembers",
    PlaceReason.PLACE_SHARED: "another realm or catalog of this store has claimed it, too",
}
"""One sentence for each code, to follow "nothing here may go, for "."""

FILE_SENTENCES = {
    FileReason.LIVE: "a stored version of a table or view refers to it",
    FileReason.LOOSELY_LIVE: "a stored version refers to a path that some reader would take for this one",
    FileReason.OWN_FILE: "Headwater wrote it for its own bookkeeping",
    FileReason.TIME_UNKNOWN: "its storage does not say when it was written",
    FileReason.NEVER_HELD: "no document of this store was ever seen to name it, so it is only reported",
    FileReason.UNKNOWN_KIND: "it is of no kind that Iceberg writes, so it is only reported",
    FileReason.TAKEN_UP: "a commit has taken it up since it was marked",
    FileReason.IN_GRACE: "nobody refers to it, and grace and delay are not over",
    FileReason.MARKED: "nobody refers to it; grace and delay are over, and a later report has to confirm it",
    FileReason.DUE: "nobody refers to it; grace and delay are over, and it was confirmed",
}
