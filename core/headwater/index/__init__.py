"""An ordered map from key bytes to values that lies in bytes. Knows nothing of commits, nor of what its values mean."""

from headwater.index.layout import Value
from headwater.index.maps import KEY_BYTES, Index, IndexEditor, after_prefix

__all__ = ["KEY_BYTES", "Index", "IndexEditor", "Value", "after_prefix"]
