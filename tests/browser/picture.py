"""Makes the picture of a report that README.md shows.

    dpm sample models/adult_income.dpm models/adult_income.csv.gz --epsilon 1 --delta 1e-6
    python3 tests/browser/picture.py adult_income-run/report.html docs/report.png

It shows the head of the page, the curves of the promise, and the results: the other
sections are left out, and the page is cut below the densities.
"""

import base64
import shutil
import sys
import tempfile
from pathlib import Path

from check_report import NAMES, Browser

WIDTH = 1100
# What is left out, and where the picture ends.
HIDE = "nav.contents, #asked, #limits, #privacy > :not(h2):not(.lead):not(.grid), details { display: none !important }"
END = "document.querySelector('#posterior .grid.three figure:nth-child(3)').getBoundingClientRect().bottom + scrollY + 24"


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    report, picture = map(Path, sys.argv[1:])
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise SystemExit(f"error: none of {', '.join(NAMES)} is installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            browser.open_page()
            browser.ask("Emulation.setDeviceMetricsOverride", width=WIDTH, height=900,
                        deviceScaleFactor=1, mobile=False)
            browser.ask("Emulation.setEmulatedMedia",
                        features=[{"name": "prefers-color-scheme", "value": "light"}])
            browser.ask("Page.navigate", url=report.resolve().as_uri())
            browser.wait_for("Page.loadEventFired")
            browser.ask("Runtime.evaluate", expression=(
                "{ const sheet = new CSSStyleSheet(); "
                f"sheet.replaceSync({HIDE!r}); document.adoptedStyleSheets = [sheet]; }}"))
            height = browser.ask("Runtime.evaluate", expression=END)["result"]["value"]
            taken = browser.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                                clip={"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1})
        finally:
            browser.end()
    picture.write_bytes(base64.b64decode(taken["data"]))
    print(f"{picture}: {WIDTH} x {height:.0f}, {picture.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
