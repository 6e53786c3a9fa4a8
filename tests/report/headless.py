"""A headless browser driven over its debugging pipe, with nothing but the standard library."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page:
    """One tab. `problems` collects what the page threw, was refused, or asked the user."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._buffer = b""
        self._next = 0
        self._session: str | None = None
        self.problems: list[str] = []

    def attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, path: Path) -> None:
        self.call("Page.navigate", url=path.as_uri())
        while self.ask("document.readyState") != "complete" or self.ask("location.href") == "about:blank":
            pass

    def ask(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def _receive(self) -> Any:
        while b"\0" not in self._buffer:
            read = os.read(self._read, 1 << 16)
            assert read, "the browser went away"
            self._buffer += read
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(raw)
        if message.get("method") in {"Runtime.exceptionThrown", "Page.javascriptDialogOpening", "Log.entryAdded"}:
            self.problems.append(json.dumps(message))
        return message


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Page]:
    assert BROWSER is not None
    to_browser, ours_out = os.pipe()
    ours_in, from_browser = os.pipe()
    flags = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage --remote-debugging-pipe"
    # The browser reads descriptor 3 and writes descriptor 4.
    command = f'exec "$0" {flags} --user-data-dir="$1" 3<&{to_browser} 4>&{from_browser}'
    process = subprocess.Popen(
        ["bash", "-c", command, BROWSER, str(profile)],
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        page = Page(ours_in, ours_out)
        page.attach()
        yield page
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(ours_in)
        os.close(ours_out)
