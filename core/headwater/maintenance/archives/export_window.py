"""Which moments of a realm can be exported: those that are over everywhere, and still remembered."""

from __future__ import annotations

from headwater.clock import Micros, as_text
from headwater.commits import no_state_error, read_collection
from headwater.errors import ExpiredError
from headwater.settings import Settings
from headwater.store import RealmStore

__all__ = ["check_known", "newest_readable", "readable_from"]

_SECOND = 1_000_000


def readable_from(time: Micros, settings: Settings) -> Micros:
    """From when on no commit of ``time`` or before can appear any more, whichever process made it."""
    return Micros(time + round((settings.commit_timeout_seconds + settings.clock_bound_seconds) * _SECOND))


def newest_readable(now: Micros, settings: Settings) -> Micros:
    """The newest moment that can be read now."""
    return Micros(now - (readable_from(Micros(0), settings)))


def check_known(rows: RealmStore, time: Micros, *, now: Micros) -> None:
    """Pass if all that was at ``time`` is still remembered. Ask after everything was read and pinned: a collection may have begun.

    raises        ExpiredError that names the oldest moment which is
    """
    settings = rows.settings
    record = read_collection(rows)
    grace = max(settings.reader_grace_seconds, settings.writer_grace_seconds)
    oldest = max(now - round(grace * _SECOND), 0 if record is None else record.value.reader_cutoff)
    if time < oldest:
        why = f"what was deleted and moved is remembered since {as_text(oldest + _SECOND - 1)} only"
        raise no_state_error(rows.realm, "the whole", time, why, kind=ExpiredError)
