"""Signatures, the results of a try by the answers of receivers, and addresses that no webhook reaches."""

import base64
import hashlib
import hmac
import ipaddress
import socket
import threading
from typing import Any

import pytest

from app.services.webhooks import sender as module
from app.services.webhooks.sender import (
    AddressRefused,
    Sender,
    SendFailed,
    allowed_addresses,
    is_secret,
    new_secret,
    signature,
    target_of,
)
from tests.app.services.webhooks.receiver import receiving

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]


def test_the_signature_of_the_specification() -> None:
    """The example of https://github.com/standard-webhooks/standard-webhooks."""
    secret, id = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert (
        signature(secret, id, 1614265330, b'{"test": 2432232314}') == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_secrets() -> None:
    assert is_secret(new_secret())
    assert new_secret() != new_secret()
    for text in (
        "",
        "whsec_",
        "whsec_YQ==",
        "whsec_äää",
        "whsec_" + "?" * 40,
        new_secret().removeprefix("whsec_"),
        new_secret() * 3,
    ):
        assert not is_secret(text)


def test_a_message_is_signed() -> None:
    secret, body = new_secret(), '{"type":"job.ended","name":"ä"}'.encode()
    with receiving() as receiver:
        Sender(LOOPBACK).send(receiver.url, secret, "job-1.job.ended", body, 1_700_000_000)
    ((headers, sent),) = receiver.received
    assert sent == body
    assert (headers["webhook-id"], headers["webhook-timestamp"], headers["content-type"]) == (
        "job-1.job.ended",
        "1700000000",
        "application/json",
    )
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = hmac.new(key, b"job-1.job.ended.1700000000." + body, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(expected).decode()}"


@pytest.mark.parametrize(
    ("status", "message"), [(302, "302, and redirects are not followed"), (500, "was 500"), (410, "was 410")]
)
def test_other_answers_fail(status: int, message: str) -> None:
    with receiving() as receiver:
        receiver.status = status
        with pytest.raises(SendFailed, match=message):
            Sender(LOOPBACK).send(receiver.url, new_secret(), "a", b"{}", 1)
    assert len(receiver.received) == 1


def test_a_private_address_is_not_called() -> None:
    with receiving() as receiver:
        with pytest.raises(SendFailed, match="no public address"):
            Sender([]).send(receiver.url, new_secret(), "a", b"{}", 1)
        with pytest.raises(SendFailed, match="no answer"):
            Sender(LOOPBACK).send("http://127.0.0.1:9/", new_secret(), "a", b"{}", 1)
        with pytest.raises(SendFailed, match="no answer"):  # it speaks no TLS
            Sender(LOOPBACK).send(receiver.url.replace("http:", "https:"), new_secret(), "a", b"{}", 1)
    assert receiver.received == []


def test_the_first_address_that_takes_a_connection_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as receiver:
        monkeypatch.setattr(module, "allowed_addresses", lambda *_: ["127.9.9.9", "127.0.0.1"])
        Sender(LOOPBACK).send(receiver.url, new_secret(), "a", b"{}", 1)
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    ("scheme", "begin"),
    [("http", b"HTTP/1.1 200 OK\r\nX: "), ("https", b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb")],
    ids=["http", "https"],
)
def test_a_receiver_that_sends_a_byte_now_and_then_is_given_up(
    scheme: str, begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a head, or of a record of TLS that says to be long."""
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    listening, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(begin)
            while not over.wait(0.02):
                try:
                    connection.sendall(b"a")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        with pytest.raises(SendFailed, match="no answer: timed out"):
            Sender(LOOPBACK).send(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/", new_secret(), "a", b"{}", 1)
    finally:
        over.set()
        thread.join()
        listening.close()


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
