"""The list of the wrong backends, and for each the shortest story in which the model notices what is wrong.

The stories are what Hypothesis shrinks a search to; ``make test-long`` searches again without them. Backends whose faults show in
races alone stand in ``broken_backends``, and two that simulated worlds find out in ``test_simulated_worlds``.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from backend_model import BackendModel, ObjectBody, ReferenceBody

from headwater.clock import Micros
from headwater.store import Backend, ObjectId, RealmKey, ReferenceMove

__all__ = ["STORIES", "tell"]

BRANCH = ReferenceBody(None, 1, Micros(0), (), (), None)
NOTE = ObjectBody("note", Micros(0), "a", (b"",))
IN_PARTS = ObjectBody("note", Micros(0), None, (b"a", b"b", b"c"))
BIGGEST = (1 << 63) - 1


def tell(story: Callable[[BackendModel], None], backend: Backend) -> None:
    """One story on an empty backend, with a look at all rows at the end.

    raises        AssertionError, or what pytest raises, where the backend does not do as two dictionaries do
    """
    model = BackendModel(backend)
    model.choose_keys(realms=[RealmKey(1), RealmKey(2)], names=["a", "A"], ids=[ObjectId(1), ObjectId(2)])
    story(model)
    model.all_rows_read_back_as_they_were_written()
    model.scans_tell_all_rows()


def create(model: BackendModel, *, realm: int = 0, name: int = 0) -> None:
    model.create_references(wishes=[(realm, name, BRANCH)])


def write(model: BackendModel, body: ObjectBody = NOTE) -> None:
    model.write_objects(wishes=[(0, 0, body)], times=1, order=random.Random(0))


def swap_of_another_pointer(model: BackendModel) -> None:
    create(model)
    model.swap_reference(realm=0, name=0, body=BRANCH._replace(pointer=ObjectId(1)), how="elsewhere")


def removal_with_other_moves(model: BackendModel) -> None:
    create(model)
    body = BRANCH._replace(moves=(ReferenceMove(ObjectId(1), Micros(0)),))
    model.remove_reference(realm=0, name=0, body=body, how="only what counts")


def swap_of_the_creation_time(model: BackendModel) -> None:
    create(model)
    model.swap_reference(realm=0, name=0, body=BRANCH._replace(created=Micros(1)), how="as it is")


def creation_of_one_that_is_there_and_a_new_one(model: BackendModel) -> None:
    create(model)
    model.create_references(wishes=[(0, 0, BRANCH), (0, 1, BRANCH)])


def names_that_differ_in_case(model: BackendModel) -> None:
    create(model)
    model.read_references(realm=0, asked=[1])


def names_beyond_the_basic_plane(model: BackendModel) -> None:
    model.names = ["\uffff", "\U00010000"]
    model.create_references(wishes=[(0, 0, BRANCH), (0, 1, BRANCH)])


def biggest_time(model: BackendModel) -> None:
    write(model, NOTE._replace(created=Micros(BIGGEST)))


def write_of_one_object(model: BackendModel) -> None:
    write(model)


def one_object_asked_for_twice(model: BackendModel) -> None:
    model.read_objects(realm=0, asked=[(0, 0), (0, 0)])


def deletion_without_a_token(model: BackendModel) -> None:
    write(model)
    model.delete_objects(wishes=[(0, "none", "a", Micros(0))])


def scan_after_a_part(model: BackendModel) -> None:
    write(model, IN_PARTS)
    model.scan_objects_from_anywhere(realm=None, limit=1000, after=1, is_there=True)


def split_of_one_object(model: BackendModel) -> None:
    write(model)
    model.split_objects(realm=None, count=1)


def deletion_of_an_empty_realm(model: BackendModel) -> None:
    create(model, realm=1)
    model.delete_realm(realm=0, limit=1)


def deletion_of_one_of_two_rows(model: BackendModel) -> None:
    create(model, name=0)
    create(model, name=1)
    model.delete_realm(realm=0, limit=1)


def commit_to_an_absent_reference(model: BackendModel) -> None:
    model.write_and_swap(realm=0, name=0, body=BRANCH, how="as it is", wishes=[(0, 0, NOTE)])


STORIES: dict[str, Callable[[BackendModel], None]] = {
    "ComparesVersionsAlone": swap_of_another_pointer,
    "ComparesWholeRows": removal_with_other_moves,
    "KeepsCreationTimes": swap_of_the_creation_time,
    "CreatesAllOrNone": creation_of_one_that_is_there_and_a_new_one,
    "FoldsCase": names_that_differ_in_case,
    "OrdersLikeUtf16": names_beyond_the_basic_plane,
    "LosesPrecision": biggest_time,
    "LeavesParts": write_of_one_object,
    "AnswersOnce": one_object_asked_for_twice,
    "TakesNoTokenForAny": deletion_without_a_token,
    "BeginsAgainWithTheLast": scan_after_a_part,
    "SplitsOnlyWhatIsThere": split_of_one_object,
    "DeletesNeighbours": deletion_of_an_empty_realm,
    "DeletesMoreThanAsked": deletion_of_one_of_two_rows,
    "WritesObjectsOfTheBeaten": commit_to_an_absent_reference,
}
"""Each wrong backend by its name: what the model must go on noticing."""
