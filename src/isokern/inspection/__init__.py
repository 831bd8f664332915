"""Look into models: what each column adds to a score, and which stored rows are most similar to a row."""

from isokern.inspection._explain import explain
from isokern.inspection._similar_rows import SimilarRows, similar_rows
from isokern.inspection.explanation import Explanation

__all__ = ["Explanation", "SimilarRows", "explain", "similar_rows"]
