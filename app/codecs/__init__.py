"""From bytes to documents: one module a wire format, each a push parser that never holds more than a block of the body."""
