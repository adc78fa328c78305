"""An ordered map from key bytes to values that spills into stripes. Knows nothing of commits, nor of what its values mean."""

from headwater.index.index_check import IndexChecker
from headwater.index.index_nodes import (
    Change,
    Entry,
    IndexContainer,
    IndexLimits,
    IndexValue,
    SharedIndexScan,
    Stripe,
    StripeList,
    StripeReader,
    count_first_bytes,
)
from headwater.index.ordered_index import (
    Index,
    IndexDifference,
    IndexEditor,
    NewIndex,
    StoredIndex,
    after_prefix,
    index_differences,
)
from headwater.index.page_columns import KEY_BYTES

__all__ = [
    "KEY_BYTES",
    "Change",
    "Entry",
    "Index",
    "IndexChecker",
    "IndexContainer",
    "IndexDifference",
    "IndexEditor",
    "IndexLimits",
    "IndexValue",
    "NewIndex",
    "SharedIndexScan",
    "StoredIndex",
    "Stripe",
    "StripeList",
    "StripeReader",
    "after_prefix",
    "count_first_bytes",
    "index_differences",
]
