"""The site, built once for all tests of it, and a way to see it as a reader does."""

import functools
import http.server
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from browser import axe_core, chromium  # noqa: F401 (a fixture)

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("sphinx", "myst_nb", "sphinx_book_theme", "math_core")
sys.path.insert(0, str(ROOT / "docs" / "site"))


def pytest_collection_modifyitems(items) -> None:
    """A test that needs the built site takes as long as the build."""
    for item in items:
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The folder of the site, built from the notebooks as they are; a warning of the build is an error."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the extra `site` is not installed: {missing} are missing")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "docs/site", "--output", folder / "html", "--work", folder / "work"]
    # No network: whoever asks for an address outside gets an error.
    environment = {**os.environ, "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run([*map(str, command)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "work" / "external_links.txt").is_file()
    return (folder / "html").resolve()


@pytest.fixture(scope="session")
def pages(site) -> dict:
    """What each page of the site has and leads to."""
    from checked_pages import read_all

    return read_all(site)


@pytest.fixture(scope="session")
def served(site) -> str:
    """The address of the site on a server of this machine."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    return axe_core()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments) -> None:
        """Say nothing of each request."""
