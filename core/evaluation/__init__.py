"""How good the answers of a model are: counted from labels, ranked by scores, compared with probabilities. Loads with NumPy alone."""

from core.evaluation.confusion import Agreement, Confusion
from core.evaluation.ranking import Ranking, ranked
from core.evaluation.reliability import Reliability

__all__ = ["Agreement", "Confusion", "Ranking", "Reliability", "ranked"]
