"""Opens reports of `dpm report` in headless Chromium, as a reader would.

    python3 tests/browser/check_report.py [--shots DIR] REPORT.html...

On a wide screen, a phone and paper, light and dark: nothing is asked of any network, the
console stays silent, nothing is wider than the screen, every drawing has words beside it,
no text is too small or too pale. With --shots, the pictures and the PDF stay in DIR.

Needs Chromium and Python's own library: the browser is spoken to through a pipe, by the
DevTools protocol.
"""

import argparse
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
SECONDS = 60
# Width, height, phone or not, dark or not.
SCREENS = {
    "wide-light": (1280, 900, False, False),
    "wide-dark": (1280, 900, False, True),
    "phone-light": (390, 844, True, False),
    "phone-dark": (390, 844, True, True),
}
# WCAG 2.1, 1.4.3: of large text 3 would do.
CONTRAST = 4.5
# CSS pixels; of labels on drawings.
SMALLEST_TEXT = 8.5

# What is wrong with the page as it stands on the screen, as a list of sentences.
EXAMINE = """
(() => {
  const wrong = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth + 1)
    wrong.push(`the page is ${root.scrollWidth} pixels wide on a screen of ${root.clientWidth}`);
  if (!root.lang) wrong.push('the page does not say its language');
  for (const tag of ['main', 'header', 'nav', 'footer', 'h1'])
    if (document.querySelectorAll(tag).length !== 1) wrong.push(`not exactly one <${tag}>`);
  for (const tag of ['script', 'iframe', 'object', 'embed', 'img', 'form'])
    if (document.querySelector(tag)) wrong.push(`a <${tag}> in the page`);
  for (const details of document.querySelectorAll('details')) details.open = true;
  for (const svg of document.querySelectorAll('svg')) {
    const named = svg.getAttribute('role') === 'img' && svg.getAttribute('aria-label');
    if (!named && svg.getAttribute('aria-hidden') !== 'true') wrong.push('a drawing without words');
    if (/NaN|Infinity|undefined/.test(svg.outerHTML.replace(/aria-label="[^"]*"/g, '').replace(/>[^<]*</g, '><')))
      wrong.push('a drawing with places that are no numbers');
  }
  for (const link of document.querySelectorAll('a[href^="#"]'))
    if (!document.getElementById(link.getAttribute('href').slice(1))) wrong.push(`${link.href} leads nowhere`);
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const f = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return [255, 255, 255, 255];
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element)) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const svg = element.closest('svg');
    const ink = rgba(svg ? style.fill : style.color), paper = behind(svg ? svg.parentElement : element);
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < CONTRAST)
      wrong.push(`contrast ${contrast.toFixed(2)} of "${element.textContent.slice(0, 40)}"`);
    let size = parseFloat(style.fontSize);
    if (svg && svg.getScreenCTM()) size *= svg.getScreenCTM().a;
    if (size < SMALLEST) wrong.push(`text of ${size.toFixed(1)} pixels: "${element.textContent.slice(0, 40)}"`);
  }
  return wrong.slice(0, 12);
})()
"""


class Browser:
    """Chromium, spoken to through a pipe."""

    def __init__(self, program, folder):
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()

        def place_pipes():
            # The browser reads from 3 and writes to 4.
            spare = [os.dup(to_read), os.dup(to_write)]
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        flags = [
            "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}",
            "--no-first-run", "--no-default-browser-check", "--disable-gpu", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND",
        ]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        self.process = subprocess.Popen(
            [program, *flags, "about:blank"], preexec_fn=place_pipes, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.events = []

    def message(self, until):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise SystemExit(f"error: the browser says nothing for {SECONDS} seconds")
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise SystemExit("error: the browser has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **parameters):
        self.number += 1
        question = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            question["sessionId"] = self.session
        os.write(self.write_end, json.dumps(question).encode() + b"\0")
        until = time.monotonic() + SECONDS
        while True:
            message = self.message(until)
            if message.get("id") == self.number:
                if "error" in message:
                    raise SystemExit(f"error: {method}: {message['error']}")
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def wait_for(self, method):
        until = time.monotonic() + SECONDS
        while not any(event["method"] == method for event in self.events):
            message = self.message(until)
            if "method" in message:
                self.events.append(message)

    def open_page(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Network", "Log", "Runtime"]:
            self.ask(f"{domain}.enable")

    def end(self):
        for end in [self.write_end, self.read_end]:
            os.close(end)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def complaints(events, address):
    """What the browser said of the page that it should not have."""
    for event in events:
        method, says = event["method"], event["params"]
        if method == "Network.requestWillBeSent":
            asked = says["request"]["url"]
            if asked != address and not asked.startswith("data:"):
                yield f"asks for {asked}"
        elif method == "Log.entryAdded":
            yield f"{says['entry']['source']}: {says['entry']['text']}"
        elif method == "Runtime.consoleAPICalled":
            yield f"writes to the console: {says['args']}"
        elif method == "Runtime.exceptionThrown":
            yield f"throws: {says['exceptionDetails'].get('text')}"


def examine(browser, report, shots):
    address = report.resolve().as_uri()
    wrong = []
    script = EXAMINE.replace("CONTRAST", str(CONTRAST)).replace("SMALLEST", str(SMALLEST_TEXT))
    for name, (width, height, phone, dark) in SCREENS.items():
        browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                    deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.ask("Emulation.setEmulatedMedia", features=[scheme])
        load(browser, address)
        picture = browser.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                              clip={"x": 0, "y": 0, "width": width, "height": full_height(browser), "scale": 1})
        data = base64.b64decode(picture["data"])
        if shots:
            (shots / f"{report.stem}-{name}.png").write_bytes(data)
        # A blank page of this size packs into a few kilobytes.
        if len(data) < 40_000:
            wrong.append(f"{name}: a picture of {len(data)} bytes shows hardly anything")
        found = browser.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in found:
            raise SystemExit(f"error: {found['exceptionDetails']}")
        wrong += [f"{name}: {what}" for what in found["result"]["value"]]
        wrong += [f"{name}: {what}" for what in complaints(browser.events, address)]
    browser.ask("Emulation.clearDeviceMetricsOverride")
    load(browser, address)
    paper = base64.b64decode(browser.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
    if not paper.startswith(b"%PDF") or len(paper) < 20_000:
        wrong.append("it does not print")
    if shots:
        (shots / f"{report.stem}.pdf").write_bytes(paper)
    return wrong


def load(browser, address):
    browser.events.clear()
    browser.ask("Page.navigate", url=address)
    browser.wait_for("Page.loadEventFired")


def full_height(browser):
    size = browser.ask("Page.getLayoutMetrics")["cssContentSize"]
    return min(size["height"], 16_000)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.html")
    parser.add_argument("--shots", type=Path, metavar="DIR", help="where pictures and PDF go")
    arguments = parser.parse_args()
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise SystemExit(f"error: none of {', '.join(NAMES)} is installed; on Debian: apt-get install chromium")
    if arguments.shots:
        arguments.shots.mkdir(parents=True, exist_ok=True)
    failed = False
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            browser.open_page()
            for report in arguments.reports:
                wrong = examine(browser, report, arguments.shots)
                failed |= bool(wrong)
                for what in wrong:
                    print(f"{report}: {what}")
                if not wrong:
                    print(f"{report}: right on {len(SCREENS)} screens and on paper")
        finally:
            browser.end()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
