"""Text cut at its lines, whatever the pieces in which it comes."""

from workers.errors import LimitExceeded


class Lines:
    """Keeps the line that is not complete yet; raises LimitExceeded when it grows beyond ``longest`` bytes."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = bytearray()
        self.number = 1
        """of the first line of the next block; whoever takes a block counts it on"""

    def feed(self, data: bytes) -> bytes:
        """All lines that are complete now."""
        end = data.rfind(b"\n") + 1
        if end:
            block, self._rest = bytes(self._rest) + data[:end], bytearray(data[end:])
        else:
            block = b""
            self._rest += data
        if len(self._rest) > self._longest:
            line = self.number + block.count(b"\n")
            raise LimitExceeded(f"bytes in line {line}", self._longest)
        return block

    def finish(self) -> bytes:
        """The last line, if the text does not end with a line feed."""
        block, self._rest = bytes(self._rest), bytearray()
        return block
