"""A headless Chromium that a test drives by keys: tabs, what they show, how they look."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Tab:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._number = socket, 0

    async def tell(self, method: str, **parameters: Any) -> Any:
        """One command of the DevTools protocol, and its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            answer = await self._socket.receive_json()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    async def run(self, script: str) -> Any:
        """The value of an expression."""
        result = await self.tell("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, script: str) -> Any:
        """The value of an expression as soon as it is true."""
        for _ in range(1_200):
            value = await self.run(script)
            if value:
                return value
            await asyncio.sleep(0.05)
        raise AssertionError(f"never true: {script}: {await self.run('document.body.innerText')}")

    async def go(self, address: str) -> None:
        """Open an address; ready once the page's script has drawn."""
        await self.tell("Page.navigate", url=address)
        await self.until("location.href!=='about:blank'&&document.readyState==='complete'")
        await self.until("document.documentElement.dataset.ready==='1'")

    async def press(self, key: str) -> None:
        """One key, down and up, and what it started done."""
        text = {"Enter": "\r", "Escape": "", "Tab": ""}.get(key, key)
        await self.tell("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        await self.tell("Input.dispatchKeyEvent", type="keyUp", key=key)
        await self.until("!document.body.hasAttribute('aria-busy')")

    async def type(self, text: str) -> None:
        """Text into where the cursor is."""
        await self.tell("Input.insertText", text=text)

    async def look(self, width: int, height: int, *, dark: bool = False) -> bytes:
        """A picture as PNG."""
        await self.tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.tell("Emulation.setEmulatedMedia", features=[scheme])
        return base64.b64decode((await self.tell("Page.captureScreenshot"))["data"])


class Browser:
    """A running Chromium."""

    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        self._root, self._session = f"http://127.0.0.1:{port}", session

    async def tab(self) -> Tab:
        """A new tab."""
        async with self._session.put(f"{self._root}/json/new?about:blank") as answer:
            address = (await answer.json(content_type=None))["webSocketDebuggerUrl"]
        tab = Tab(await self._session.ws_connect(address, max_msg_size=0))
        await tab.tell("Page.enable")
        return tab


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Browser]:
    """A browser that ends with the block; the test is skipped where none is installed."""
    binary = next((path for path in map(shutil.which, NAMES) if path), None)
    if binary is None:
        reason = f"none of {', '.join(NAMES)} is installed"
        if os.environ.get("AUXEVAL_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    process = await asyncio.create_subprocess_exec(
        binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
        "--no-proxy-server", f"--user-data-dir={folder / 'profile'}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        place = folder / "profile" / "DevToolsActivePort"
        while not place.is_file() or not place.read_text().strip():
            assert process.returncode is None, "the browser did not start"
            await asyncio.sleep(0.05)
        async with aiohttp.ClientSession() as session:
            yield Browser(int(place.read_text().split()[0]), session)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
