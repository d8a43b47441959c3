"""Evaluation of predictions: confusion of labels, ranking by scores, reliability of probabilities.

Loads with NumPy alone.
"""

from core.evaluation.confusion import Agreement, Confusion
from core.evaluation.ranking import Ranking, ranked
from core.evaluation.reliability import Reliability

__all__ = ["Agreement", "Confusion", "Ranking", "Reliability", "ranked"]
