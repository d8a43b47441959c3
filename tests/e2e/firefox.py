"""Debian's Firefox for the tests of the page, by Marionette, which it has built in: Playwright drives a Firefox of its
own alone.
"""

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.processes import free_port
from tests.waiting import HANG

NAMES = ("firefox-esr", "firefox")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""the key of elements in the protocol, as WebDriver has it"""
_WATCH = """
window.complaints = [];
addEventListener("error", (event) => complaints.push(String(event.message)));
addEventListener("unhandledrejection", (event) => complaints.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => complaints.push(event.violatedDirective));
"""
_FOCUSED = """
if (document.activeElement === document.body) document.querySelector("a, button")?.focus();
const at = document.activeElement;
return at.matches(arguments[0]) && at.innerText.includes(arguments[1]);
"""
"""Behind its last element a Firefox with a toolbar comes to the first one; a headless one may go back to the last."""
_STEPS = 250
KEYS = {"Enter": "\ue007", "Tab": "\ue004", "Space": " ", "Backspace": "\ue003"}


def executable() -> str | None:
    """Path of the browser; None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Firefox:
    """A window of Firefox: addresses, scripts and keys."""

    def __init__(self, port: int) -> None:
        self._socket = _connected(port)
        self._stream = self._socket.makefile("rwb")
        self._count = 0
        self._read()
        self.ask("WebDriver:NewSession", capabilities={})

    def ask(self, command: str, **parameters: Any) -> Any:
        """The answer to a command; raises AssertionError with what Firefox says is wrong."""
        self._count += 1
        message = json.dumps([0, self._count, command, parameters]).encode()
        self._stream.write(b"%d:%s" % (len(message), message))
        self._stream.flush()
        _, _, error, result = self._read()
        assert error is None, f"{command}: {error}"
        return result

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a script, which returns it."""
        return self.ask("WebDriver:ExecuteScript", script=script, args=[*arguments], sandbox=None)["value"]

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def open(self, url: str) -> None:
        self.ask("WebDriver:Navigate", url=url)
        self.run(_WATCH)

    def until(self, condition: str, *arguments: Any) -> Any:
        """The value of an expression once it is true."""
        deadline = time.monotonic() + HANG
        while not (found := self.run(f"return {condition}", *arguments)):
            assert time.monotonic() < deadline, f"never: {condition} {arguments}"
            time.sleep(0.05)
        return found

    def press(self, *keys: str) -> None:
        """Press keys on whatever has the focus."""
        named = [KEYS.get(key, key) for key in keys]
        steps = [{"type": kind, "value": key} for key in named for kind in ("keyDown", "keyUp")]
        self.ask("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": steps}])

    def reach(self, selector: str, text: str = "") -> None:
        """Move the focus by Tab alone to an element, by its selector and a part of its text."""
        self.until(
            "[...document.querySelectorAll(arguments[0])].some((e) => e.innerText.includes(arguments[1]))",
            selector,
            text,
        )
        for _ in range(_STEPS):
            if self.run(_FOCUSED, selector, text):
                return
            self.press("Tab")
        raise AssertionError(f"the keyboard does not reach {selector} {text!r}")

    def choose(self, selector: str, path: Path) -> None:
        """Give a file to a field."""
        found = self.ask("WebDriver:FindElement", using="css selector", value=selector)["value"]
        self.ask("WebDriver:ElementSendKeys", id=found[_ELEMENT], text=str(path))

    def _read(self) -> Any:
        length = b""
        while (digit := self._stream.read(1)) != b":":
            assert digit, "Firefox has ended"
            length += digit
        return json.loads(self._stream.read(int(length)))


def _connected(port: int) -> socket.socket:
    deadline = time.monotonic() + HANG
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), HANG)
        except OSError:
            assert time.monotonic() < deadline, "Firefox does not answer"
            time.sleep(0.1)


@contextmanager
def firefox(url: str) -> Iterator[Firefox]:
    """A window at the page of a service."""
    found = executable()
    assert found
    port = free_port()
    with tempfile.TemporaryDirectory() as profile:
        (Path(profile) / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
        command = [found, "--headless", "--marionette", "--no-remote", "--profile", profile]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            window = Firefox(port)
            with closing(window):
                window.open(url)
                yield window
        finally:
            process.terminate()
            process.wait(HANG)
