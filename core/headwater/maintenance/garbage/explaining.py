"""Why is this object still there: the chain from a reference down to it, or when it will go."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.catalogs import reference_text
from headwater.clock import Micros, as_text
from headwater.errors import MissingError
from headwater.maintenance.garbage.collecting import marker_for
from headwater.maintenance.garbage.listing import scope_of
from headwater.settings import duration_text
from headwater.store import ObjectId, Store, StoredObject, UnknownObject, id_text, is_fixed

__all__ = ["Explanation", "explain"]

_SENTENCES = {
    "head": "the commit is the head of {reference}",
    "grace": "the commit was the head of {reference} within the readers' grace of {grace}",
    "retention": "the retention of history keeps the commit on {reference}",
    "record": "the record of the last collection needs it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The verdict on one object.

    chain         from the keeping commit down to the object, each as "type id"; empty when nothing keeps it
    """

    realm: str
    object_id: str
    type: str
    is_kept: bool
    sentence: str
    chain: tuple[str, ...]


def explain(store: Store, realm_id: str, object_id: ObjectId) -> Explanation:
    """Judge one object as a collection that starts now would. Changes nothing.

    raises        MissingError when the object is not there; RefusedError and UnreadableError as a collection would
    """
    scope = scope_of(store, realm_id)
    [row] = store.backend.read_objects(scope.rows.key, [(object_id, 0)])
    if row is None:
        raise MissingError(f"object {id_text(object_id)} is not in realm {realm_id!r}: it was collected, or never was")
    marker = marker_for(scope, trace=True)
    marker.mark(scope.found())
    why = marker.marks.find(object_id)
    chain: tuple[str, ...] = ()
    if is_fixed(object_id):
        is_kept, sentence = True, "it stands under a fixed id, which is never collected"
    elif why is not None:
        steps = marker.chain(object_id)
        origin = marker.origins.get(steps[-1])
        sentence = _SENTENCES[why].format(
            reference=reference_text(scope.rows, origin.reference) if origin else "",
            grace=duration_text(scope.rows.settings.reader_grace_seconds),
        )
        is_kept, chain = True, tuple(_shown(scope.rows.find(step, StoredObject), step) for step in reversed(steps))
    else:
        grace = round(scope.rows.settings.writer_grace_seconds * 1_000_000)
        is_young = row.created > marker.writer_cutoff
        after = as_text(Micros(row.created + grace))
        is_kept = is_young
        sentence = (
            f"nothing keeps it; it is too young, and goes with the first collection after {after}"
            if is_young
            else "nothing keeps it: it goes with the next collection"
        )
    return Explanation(
        realm=realm_id, object_id=id_text(object_id), type=row.type, is_kept=is_kept, sentence=sentence, chain=chain
    )


def _shown(found: StoredObject | None, object_id: ObjectId) -> str:
    name = found.name if isinstance(found, UnknownObject) else "object" if found is None else found.type_name
    return f"{name} {id_text(object_id)}"
