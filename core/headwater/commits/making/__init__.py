"""How a commit is made: turns and groups, the run of a change, publishing, and finding out what became of it.

Begin with ``committer``. Knows nothing of logs, page tokens or collections.
"""

from headwater.commits.making.calls import Committed
from headwater.commits.making.committer import commit
from headwater.commits.making.series import Part, commit_series
from headwater.commits.making.transaction import Transaction

__all__ = ["Committed", "Part", "Transaction", "commit", "commit_series"]
