"""Headless Chromium over its debugging pipe: just enough to load a page, press keys, read errors and take pictures."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
KEYS = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40}


def find():
    """Path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page; ``errors`` collects console errors, exceptions and failed or foreign requests."""

    def __init__(self):
        self.profile = Path(tempfile.mkdtemp(prefix="chromium-"))
        theirs_in, self.out = os.pipe()
        self.inp, theirs_out = os.pipe()
        command = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--hide-scrollbars", "about:blank"]

        def wire():
            # Both ends move out of the way first, since either may lie on 3 or 4.
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            command, pass_fds=(3, 4, theirs_in, theirs_out), preexec_fn=wire,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.number, self.events, self.errors = b"", 0, [], []
        target = self.call("Target.createTarget", {"url": "about:blank"}, session=False)["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True}, session=False)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _receive(self):
        while b"\0" not in self.buffer:
            data = os.read(self.inp, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, parameters=None, session=True):
        """Call a method of the protocol and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _note(self, event):
        method, given = event.get("method"), event.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(given["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.errors.append(f"console: {[a.get('value') for a in given['args']]}")
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.errors.append(f"log: {given['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            url = given["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:", "about:")):
                self.errors.append(f"request: {url}")

    def open(self, path, width=1280, height=900):
        """Load a file at a window size and wait until it is loaded."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", size)
        self.events.clear()
        self.call("Page.navigate", {"url": path if "#" in str(path) else path.as_uri()})
        while "Page.loadEventFired" not in self.events:
            self._note(self._receive())

    def js(self, expression):
        """The value of an expression in the page."""
        given = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", given)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def press(self, key):
        """Press and release one key."""
        given = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"Enter": "\r", " ": " "}.get(key)
        self.call("Input.dispatchKeyEvent", {"type": "keyDown" if text else "rawKeyDown", **given,
                                             **({"text": text} if text else {})})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", **given})

    def picture(self, path, whole=True):
        """A PNG of the page."""
        data = self.call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        """End the browser and remove its profile."""
        try:
            self.call("Browser.close", session=False)
        except (RuntimeError, OSError):
            self.process.kill()
        self.process.wait(20)
        os.close(self.inp)
        os.close(self.out)
        shutil.rmtree(self.profile, ignore_errors=True)
