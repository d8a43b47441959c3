"""The client is tested against the gateways of the tests of the gateway."""

from tests.app.conftest import gateway, start, version

__all__ = ["gateway", "start", "version"]
