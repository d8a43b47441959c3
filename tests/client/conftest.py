"""The client is tested against the gateways of the tests of the gateway."""

from tests.app.conftest import gateway, shared_valkey, start, valkey

__all__ = ["gateway", "shared_valkey", "start", "valkey"]
