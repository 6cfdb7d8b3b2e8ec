"""A real browser for the tests: Debian's Chromium, driven by Selenium."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "disable-dev-shm-usage",
    "force-device-scale-factor=1",
)
DEADLINE_S = 240.0


class Browser:
    """One browser window.

    Attributes:
        driver: Selenium's own handle.
        downloads: Where saved files go.
    """

    def __init__(self, driver: webdriver.Chrome, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads

    def look(self, *, width: int = 1200, dark: bool = False) -> None:
        """Set the window's width in pixels, and light or dark."""
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def open(self, page: Path | str) -> None:
        """Open a file or an address."""
        self.driver.get(page.resolve().as_uri() if isinstance(page, Path) else page)

    def run(self, script: str, *arguments: object) -> Any:
        """The value of a script with `return`."""
        return self.driver.execute_script(script, *arguments)

    def text(self, selector: str) -> str:
        """The text of the first element that a CSS selector finds."""
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def click(self, selector: str) -> None:
        """Click the first element that a CSS selector finds."""
        self.run("document.querySelector(arguments[0]).click()", selector)

    def wait(self, met: Callable[[], object], what: str) -> None:
        """Wait until a condition is met, or fail saying what was waited for."""
        end = time.monotonic() + DEADLINE_S
        while not met():
            assert time.monotonic() < end, f"waited {DEADLINE_S:g} s in vain until {what}"
            time.sleep(0.1)

    def saved(self, ending: str) -> Path:
        """The one file with this ending that was saved, when it is whole.

        Chromium holds its place with an empty file, and puts the download there when it is finished.
        """

        def whole() -> bool:
            files = list(self.downloads.glob(f"*.{ending}"))
            return bool(files) and all(file.stat().st_size for file in files)

        self.wait(whole, f"a .{ending} file is saved")
        (file,) = self.downloads.glob(f"*.{ending}")
        return file

    def complaints(self) -> list[str]:
        """What the browser's console was told since the last call."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """A browser with an empty profile, gone at the end; skips the test where there is none."""
    binary, driver_binary = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver_binary is None:
        pytest.skip("chromium and chromedriver are not installed (Debian: apt-get install chromium chromium-driver)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = webdriver.ChromeOptions()
        options.binary_location = binary
        for flag in (*FLAGS, f"user-data-dir={folder}/profile"):
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        downloads = Path(folder) / "downloads"
        downloads.mkdir()
        driver = webdriver.Chrome(options=options, service=Service(driver_binary))
        try:
            driver.set_page_load_timeout(DEADLINE_S)
            allow = {"behavior": "allow", "downloadPath": str(downloads)}
            driver.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
            browser = Browser(driver, downloads)
            browser.look()
            yield browser
        finally:
            driver.quit()
