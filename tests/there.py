"""Values that may be None by their types, and are not."""

from typing import TypeVar

T = TypeVar("T")


def there(value: T | None) -> T:
    """The value; fails where it is None."""
    assert value is not None
    return value
