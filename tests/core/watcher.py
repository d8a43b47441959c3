"""An observer of trainings."""

from core.progress import TracePoint


class Watcher:
    """Keeps the reports and stops at one call."""

    def __init__(self, stop_at: int = -1) -> None:
        self.points: list[TracePoint] = []
        self.stop_at = stop_at

    def __call__(self, point: TracePoint, /) -> bool:
        self.points.append(point)
        return len(self.points) == self.stop_at
