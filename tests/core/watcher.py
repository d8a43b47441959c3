"""An observer of trainings."""

from collections.abc import Callable

from core.progress import TracePoint


class Watcher:
    """Keeps the reports, and stops at one call or as soon as ``over`` of a report."""

    def __init__(self, stop_at: int = -1, over: Callable[[TracePoint], bool] = lambda point: False) -> None:
        self.points: list[TracePoint] = []
        self._stop_at, self._over = stop_at, over

    def __call__(self, point: TracePoint, /) -> bool:
        self.points.append(point)
        return len(self.points) == self._stop_at or self._over(point)

    @property
    def fractions(self) -> list[float]:
        """Progress by report."""
        return [point.fraction for point in self.points]
