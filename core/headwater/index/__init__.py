"""An ordered map from key bytes to values that spills into stripes. Knows nothing of commits, nor of what its values mean."""

from headwater.index.checking import IndexChecker
from headwater.index.containers import IndexContainer, Limits, Objects
from headwater.index.differing import Difference, differing
from headwater.index.editing import IndexEditor, NewIndex, Stored
from headwater.index.keys import KEY_BYTES
from headwater.index.reading import Index, after_prefix
from headwater.index.stripes import Stripe, StripeList
from headwater.index.values import Change, Entry, Value
from headwater.index.visiting import Visit

__all__ = [
    "KEY_BYTES",
    "Change",
    "Difference",
    "Entry",
    "Index",
    "IndexChecker",
    "IndexContainer",
    "IndexEditor",
    "Limits",
    "NewIndex",
    "Objects",
    "Stored",
    "Stripe",
    "StripeList",
    "Value",
    "Visit",
    "after_prefix",
    "differing",
]
