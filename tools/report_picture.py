"""Makes docs/pictures/report.png, the picture in the README: `python tools/report_picture.py runs/demo/users`.

Needs Chromium with its driver, Selenium and Pillow (the extra `dev`).
"""

import argparse
import io
import shutil
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from fedelect.report import write_report

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "report.png"
SIZE = {"width": 1180, "height": 1180, "deviceScaleFactor": 1, "mobile": False}


def main() -> None:
    """Write the report of a run, open it, photograph its first screen: who won and the first curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder, for example runs/demo/users after `make demo`")
    options = parser.parse_args()
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        raise SystemExit(
            "chromium and chromedriver are not installed (Debian: apt-get install chromium chromium-driver)"
        )
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(options.run, Path(folder) / "report.html")
        flags = (
            "headless",
            "no-sandbox",
            "disable-gpu",
            "hide-scrollbars",
            "no-first-run",
            f"user-data-dir={folder}/p",
        )
        chrome = webdriver.ChromeOptions()
        chrome.binary_location = binary
        for flag in flags:
            chrome.add_argument(f"--{flag}")
        browser = webdriver.Chrome(options=chrome, service=Service(driver))
        try:
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
            browser.get(page.as_uri())
            time.sleep(2.0)  # until nothing moves
            picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
        finally:
            browser.quit()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(256, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
