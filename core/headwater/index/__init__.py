"""An ordered map from key bytes to values that spills into stripes. Knows nothing of commits, nor of what its values mean."""

from headwater.index.containers import IndexContainer, Limits, Objects
from headwater.index.layout import Value
from headwater.index.maps import KEY_BYTES, Index, IndexEditor, Stored, after_prefix

__all__ = ["KEY_BYTES", "Index", "IndexContainer", "IndexEditor", "Limits", "Objects", "Stored", "Value", "after_prefix"]
