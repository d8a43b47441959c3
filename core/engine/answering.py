"""Answers the requests of solvers over the rows of one matrix, one at a time."""

from typing import Any

from core.documents.rows import SparseRows
from core.engine.engine import Answers
from core.engine.kernel_requests import KernelRequest
from core.engine.kernel_service import KernelService
from core.engine.requests import Adjoint, Adjoints, Cut, Product, Scores, share
from core.progress import Checkpoint, Phase


def cost(request: object) -> float:
    """The passes over the nonzeros that a request takes; 0 for requests that are no pass."""
    match request:
        case Product(_, weights):
            return share(weights)
        case Adjoint(weights):
            return share(weights) / 2
        case Scores(_, skipped):
            return (1 - share(skipped)) / 2
        case Cut():
            return 1.0
    return 0.0


class Answering:
    """Answers requests by passes of an engine, or from kernel rows."""

    def __init__(self, rows: SparseRows, passes: Answers, checkpoint: Checkpoint, max_model_bytes: int | None) -> None:
        self._passes = passes
        self._kernels = KernelService(rows, passes, checkpoint, max_model_bytes)

    def answer(self, request: object, solver: Phase, alone: bool) -> Any:
        """The answer to the request of a solver; ``alone``: by the calling thread, while others are busy."""
        match request:
            case Adjoint():
                self._passes.adjoint(request, alone)
            case Adjoints(requests):
                self._passes.adjoints(requests, alone)
            case Product():
                return self._passes.product(request, alone)
            case Scores():
                self._passes.scores(request, alone)
            case _ if isinstance(request, KernelRequest):
                return self._kernels.answer(request, solver)
        return None
