"""Chromium without a window and without a network, driven by its own protocol through two pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FOUND = next((path for name in NAMES if (path := shutil.which(name))), None)
needs_chromium = pytest.mark.skipif(FOUND is None, reason="Chromium is not installed: apt-get install chromium")
PATIENCE = 60.0  # seconds without an answer, after which the browser counts as hung
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--no-first-run",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no name resolves, so there is no network
    "--remote-debugging-pipe",
)


class Browser:
    """One tab: ``errors`` are the messages of its console that are errors, and exceptions; ``asked`` are requests."""

    def __init__(self, folder: Path) -> None:
        into, self._write = os.pipe()
        self._read, out = os.pipe()
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        command = ["bash", "-c", script, "bash", str(into), str(out), str(FOUND), *OPTIONS, f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(command, pass_fds=(into, out), stderr=subprocess.DEVNULL)
        os.close(into)
        os.close(out)
        self._rest = b""
        self._last = 0
        self._session: str | None = None
        self.errors: list[str] = []
        self.asked: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.send(f"{domain}.enable")
        self.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)

    def send(self, method: str, **params: Any) -> Any:
        """The answer to a command of the protocol."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            more = os.read(self._read, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def _note(self, event: Any) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(params["exceptionDetails"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.errors.append(json.dumps(params["entry"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "assert"):
                self.errors.append(json.dumps(params["args"]))
            case "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])
            case "Page.javascriptDialogOpening":
                self.errors.append(f"a dialog: {params['message']}")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def show(self, path: Path, width: int = 1600, height: int = 1000, dark: bool = False) -> None:
        """Open a file, and wait until its page is ready."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Page.navigate", url=path.as_uri())
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def wait(self, condition: str) -> None:
        """Wait until an expression holds."""
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, f"{condition} never held; {self.errors}"
            time.sleep(0.02)

    def press(self, key: str, text: str = "") -> None:
        """Press a key."""
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, code=key)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def click(self, selector: str, times: int = 1) -> None:
        """Click the middle of an element with the mouse."""
        place = f"document.querySelector({json.dumps(selector)})"
        box = self.run(
            f"(() => {{ const e = {place}; e.scrollIntoView({{block: 'center', inline: 'center'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                where = {"x": box[0], "y": box[1], "button": "left", "clickCount": count}
                self.send("Input.dispatchMouseEvent", type=kind, **where)

    def picture(self, path: Path, whole: bool = True) -> None:
        """A picture of the page, for someone to look at."""
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser that ends with the block."""
    made = Browser(folder)
    try:
        yield made
    finally:
        made.close()
