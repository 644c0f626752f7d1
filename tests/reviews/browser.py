"""A headless Chromium, driven by its DevTools protocol over a pipe: real keys, real layout."""

import base64
import json
import os
import shutil
import subprocess
import time

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
PATIENCE = 30  # seconds
KEYS = {"Enter": 13, "ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Tab": 9}
SHIFT = 8


class Browser:
    """One page; as a context, so that the browser ends with it."""

    def __init__(self, folder):
        into, self.into = os.pipe()
        self.out, out = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        flags += ["--no-first-run", "--hide-scrollbars", f"--user-data-dir={folder}"]
        command = ["bash", "-c", f'exec "$@" 3<&{into} 4>&{out}', "-", CHROMIUM, *flags]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, pass_fds=(into, out), **quiet)
        os.close(into)
        os.close(out)
        self.number = 0
        self.buffer = b""
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.into)
        os.close(self.out)

    def call(self, method, **params):
        """The result of a command."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while (reply := self.read()).get("id") != self.number:
            self.events.append(reply)
        assert "error" not in reply, reply
        return reply["result"]

    def read(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.out, 1 << 16)
            assert piece, "the browser has ended"
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def size(self, width, height=900):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)

    def open(self, address, until):
        self.call("Page.navigate", url=address)
        self.wait(until)

    def ask(self, script):
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition):
        """Until an expression of the page is true."""
        ends = time.monotonic() + PATIENCE
        while not self.ask(condition):
            assert time.monotonic() < ends, condition
            time.sleep(0.02)

    def press(self, *keys, shift=False):
        for key in keys:
            code = KEYS.get(key) or ord(key.upper())
            one = {"key": key, "windowsVirtualKeyCode": code, "modifiers": SHIFT if shift else 0}
            one |= (
                {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
            )
            self.call("Input.dispatchKeyEvent", type="keyDown", **one)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def drag(self, start, end):
        """With the mouse, from one point of the page to another."""
        for kind, (x, y) in (("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)):
            given = {"x": x, "y": y, "button": "left", "clickCount": 1, "buttons": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **given)

    def picture(self, path):
        found = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))
