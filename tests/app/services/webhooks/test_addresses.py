"""No webhook reaches into the network of the service, whatever the address is written like or resolves to."""

import ipaddress
import socket
from typing import Any

import pytest

from app.services.webhooks.sender import AddressRefused, allowed_addresses, target_of

PRIVATE = [
    *(
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "192.0.2.1",
        "192.0.0.8",
        "192.0.0.9",
        "192.88.99.1",
    ),
    *(
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fec0::1",
        "::169.254.169.254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1:0:0:80ff:fffe",
        "2001:db8::1",
        "3fff::1",
        "64:ff9b:1::7f00:1",
    ),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_resolves_to_a_private_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One private address among public ones is enough."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [answer("93.184.215.14"), answer(address)])
    with pytest.raises(AddressRefused, match="HALFMOON_WEBHOOK_NETWORKS"):
        allowed_addresses(target_of("https://example.com/"), [])
    network = ipaddress.ip_network(address)
    assert allowed_addresses(target_of("https://example.com/"), [network]) == ["93.184.215.14", address]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://[::1]:80/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://localhost/",
    ],
)
def test_ways_to_write_this_machine(url: str) -> None:
    with pytest.raises(AddressRefused, match="no public address"):
        allowed_addresses(target_of(url), [])


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:4700::1111", "64:ff9b::808:808"])
def test_public_addresses(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [answer(address)])
    assert allowed_addresses(target_of("https://example.com/"), []) == [address]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com",
        "example.com",
        "http://",
        "http://a b/",
        "http://exa\nmple.com/",
        "http://ä.de/",
        "http://a:99999/",
        "http://u:p@a/",
        "http://[/",
    ],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(AddressRefused):
        target_of(url)


@pytest.mark.parametrize("url", [f"https://{'a' * 64}.com/", "https://a..example/"])
def test_a_host_that_no_name_may_be(url: str) -> None:
    with pytest.raises(AddressRefused, match="no name may be"):
        allowed_addresses(target_of(url), [])


def test_the_parts_of_an_address() -> None:
    assert target_of("https://example.com") == ("https", "example.com", 443, "/")
    assert target_of("http://example.com:81/a?b=c") == ("http", "example.com", 81, "/a?b=c")


def answer(address: str) -> Any:
    return (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))
