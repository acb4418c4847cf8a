"""A real browser for tests: Chromium, driven by Playwright, offline, with everything it complains about kept."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = (360, 768, 1440)  # pixels: a phone, a tablet, a desktop
AXE_CORE = "axe-core@4.14.1"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@pytest.fixture(scope="module")
def chromium():
    """A Chromium for the tests of one module; skipped where Playwright or the browser is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no Chromium on the path; install one (Debian: apt install chromium) or name it in CHROMIUM")
    with api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=list(_QUIET))
        except api.Error as error:
            pytest.skip(f"{path} does not start here: {error.message.splitlines()[0]}")
        yield browser
        browser.close()


@contextmanager
def opened(
    browser, path: Path, *, width: int = 1440, dark: bool = False, javascript: bool = True, **options
) -> Iterator:
    """A page opened from disk, without network; when it closes, it must have asked for nothing else and said nothing.

    Args:
        browser: the fixture `chromium`.
        path: of the HTML file; a fragment may follow as part of the name.
        width: of the window, in pixels.
        dark: whether the reader prefers dark pages.
        javascript: False for a reader without it.
        **options: of Playwright's new_context.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=javascript,
        offline=True,
        **options,
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    page.on("request", lambda request: complaints.append(f"asked for {request.url}") if _leaves(request.url) else None)
    try:
        page.goto(path.as_uri())
        yield page
        page.evaluate("1") if javascript else page.title()  # what was said until now has arrived
    finally:
        context.close()
    assert complaints == [], complaints


def _leaves(url: str) -> bool:
    """Whether an address is outside of the computer."""
    return not url.startswith(("file:", "data:", "blob:", "about:"))


def axe_core() -> str:
    """The source of axe-core, which finds what hinders readers with a disability: npm brings it into pytest's cache.

    AXE_CORE may name another axe.min.js. Where there is neither, the test is skipped.
    """
    folder = ROOT / ".pytest_cache" / "d" / "axe-core"
    given = os.environ.get("AXE_CORE")
    path = Path(given) if given else folder / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        if not shutil.which("npm"):
            pytest.skip("npm, which brings axe-core, is not installed; or name its axe.min.js in AXE_CORE")
        folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", AXE_CORE]
        if subprocess.run(install, capture_output=True, timeout=120, check=False).returncode != 0:
            pytest.skip("npm cannot install axe-core, perhaps without a network")
    return path.read_text(encoding="utf-8")


def serious_findings(page, source: str) -> list[str]:
    """What axe-core finds on a page that is serious or critical: its rule, and the elements."""
    page.evaluate(source)
    options = "{resultTypes: ['violations'], preload: false}"  # a page from disk may not read its style sheets anew
    found = page.evaluate(f"axe.run(document, {options}).then((result) => result.violations)")
    return [
        f"{finding['id']}: {[node['target'] for node in finding['nodes']]}"
        for finding in found
        if finding["impact"] in ("serious", "critical")
    ]
