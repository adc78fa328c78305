"""An ordered map from key bytes to values that spills into stripes. Knows nothing of commits, nor of what its values mean."""

from headwater.index.index_check import IndexChecker
from headwater.index.index_diff import IndexDifference, index_differences
from headwater.index.index_nodes import IndexContainer, IndexLimits, Stripe, StripeList, StripeReader
from headwater.index.ordered_index import Index, IndexEditor, NewIndex, StoredIndex, after_prefix
from headwater.index.page import Change, Entry, IndexValue
from headwater.index.page_columns import KEY_BYTES
from headwater.index.prefetch import SharedIndexScan

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
    "index_differences",
]
