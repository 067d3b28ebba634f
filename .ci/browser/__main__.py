"""Opens all that is looked at in Chromium, and says what is wrong with it.

`python .ci/browser` makes four reports, a gallery of what notebooks show, and the site, and opens each page in a
wide and in a narrow window, in light and in dark mode; reports and gallery also without JavaScript. It fails where
the console has an error, something is asked of another host, the page is wider than the window, code or a table is
cut, or text has too little contrast; of reports and gallery also where a picture has no words, and of the site where
axe finds that it breaks WCAG 2, A or AA. A report of 1,000 windows takes less than a second without network.
`--screenshots FOLDER` keeps what it has seen.

`python .ci/browser --pictures` makes the two screenshots of the documentation.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from threading import Thread
from typing import NamedTuple

from axe_playwright_python.sync_playwright import Axe
from pages import ROOT, make_gallery, make_reports, make_site
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

WIDTHS, MODES, HEIGHT = (1280, 400), ("light", "dark"), 900
FAULTS = (Path(__file__).parent / "faults.js").read_text(encoding="utf-8")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/favicon.ico":  # browsers ask for it, whatever the page
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder's pages on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@contextmanager
def chromium() -> Iterator[Browser]:
    """That of the system."""
    path = os.environ.get("CHROMIUM") or which("chromium")
    if path is None:
        sys.exit("there is no chromium; CHROMIUM may say where it is")
    quiet = [
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=quiet)
        yield browser
        browser.close()


class Case(NamedTuple):
    """A page as it is opened; where `is_strict`, its pictures are checked, too, and its contrast is computed here."""

    place: str
    mode: str
    scripts: bool
    is_strict: bool


def faults_of(browser: Browser, host: str, case: Case, screenshots: Path | None) -> list[str]:
    """What is wrong with a page, which is loaded once and shown in each width."""
    found: list[str] = []
    context = browser.new_context(java_script_enabled=case.scripts, color_scheme=case.mode)  # type: ignore[arg-type]
    page = context.new_page()
    page.on(
        "console",
        lambda message: found.append(f"console: {message.text}") if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("request", lambda one: None if _is_own(one.url, host) else found.append(f"asks for {one.url}"))
    page.goto(f"{host}/{case.place}")
    for width in WIDTHS:  # the menu of the site slides in where a window grows, so it gets narrow
        page.set_viewport_size({"width": width, "height": HEIGHT})
        found += [f"{width} px: {fault}" for fault in page.evaluate(FAULTS, case.is_strict)]
        if screenshots is not None:
            name = case.place.removesuffix(".html").replace("/", "-")
            page.screenshot(path=screenshots / f"{name}-{width}-{case.mode}.png", full_page=True)
    if not case.is_strict:
        found += broken_rules(page)
    context.close()
    scripts = "" if case.scripts else ", without JavaScript"
    return [f"{case.place}, {case.mode}{scripts}: {fault}" for fault in dict.fromkeys(found)]


def seconds_to_open(browser: Browser, page: Path) -> float:
    """Return how long the file of a page takes until it is loaded, without network."""
    context = browser.new_context(offline=True)
    shown = context.new_page()
    shown.goto(page.as_uri())
    milliseconds: float = shown.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    context.close()
    return milliseconds / 1000


def broken_rules(page: Page) -> list[str]:
    """Return what breaks WCAG 2, A or AA, in each width, by axe; of code, one part of each kind."""
    # on their way, colours have less contrast
    page.add_style_tag(content="* { transition: none !important }")
    page.evaluate("""() => {
      const kinds = new Set();
      for (const part of document.querySelectorAll(".highlight span[class]"))
        kinds.has(part.className) ? part.remove() : kinds.add(part.className);
    }""")
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        result = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"], "resultTypes": ["violations"]})
        for violation in result.response["violations"]:
            parts = [
                " ".join(f"{node['failureSummary']}: {node['html']}".split()) for node in violation["nodes"]
            ]
            found += [f"{width} px: {violation['id']}: {part}"[:280] for part in parts]
    return found


def _is_own(url: str, host: str) -> bool:
    return url.startswith((f"{host}/", "data:", "blob:"))


def check(screenshots: Path | None) -> bool:
    """Print what is wrong with any page; whether nothing is."""
    found: list[str] = []
    with TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        reports = make_reports(folder)
        seconds = min(
            seconds_to_open(browser, reports["windows"]) for _ in range(3)
        )  # others use the machine, too
        print(f"the report of 1,000 windows opened in {seconds:.2f} s")
        if seconds >= 1:
            found.append("the report of 1,000 windows is slow")
        strict = [*reports.values(), make_gallery(folder)]
        opened = [(page, scripts, True) for page in strict for scripts in (False, True)]
        opened += [(page, True, False) for page in make_site(folder)]
        cases = [Case(str(page.relative_to(folder)), mode, *how) for page, *how in opened for mode in MODES]
        with served(folder) as host:
            for case in cases:
                faults = faults_of(browser, host, case, screenshots)
                for fault in faults:
                    print(fault)
                found += faults
    print(f"{len(cases)} times a page was opened; {len(found)} faults")
    return not found


def take_pictures(folder: Path) -> None:
    """The beginning of the report on examples/pack_source.toml, as the documentation shows it."""
    with TemporaryDirectory() as name, chromium() as browser:
        report = make_reports(Path(name))["example"]
        for mode in MODES:
            page = browser.new_page(viewport={"width": WIDTHS[0], "height": HEIGHT}, color_scheme=mode)  # type: ignore[arg-type]
            page.goto(report.as_uri())
            shown = Image.open(BytesIO(page.screenshot())).convert("RGB").quantize(64)
            shown.save(folder / f"report-{mode}.png", optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of all pages")
    parser.add_argument(
        "--pictures", action="store_true", help="make the two of the documentation, and nothing else"
    )
    given = parser.parse_args()
    if given.pictures:
        take_pictures(ROOT / "docs" / "pictures")
        return
    if given.screenshots is not None:
        given.screenshots.mkdir(parents=True, exist_ok=True)
    sys.exit(0 if check(given.screenshots) else 1)


if __name__ == "__main__":
    main()
