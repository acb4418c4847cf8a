"""The site, built once for all tests of it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("sphinx", "myst_nb", "sphinx_book_theme", "math_core")


def pytest_collection_modifyitems(items) -> None:
    """A test that needs the built site takes as long as the build."""
    for item in items:
        if {"site", "published_site"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """A function that builds the site into a folder of its own, and returns the folder and what was printed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the extra `site` is not installed: {missing}")

    def run(*arguments: str) -> tuple[Path, subprocess.CompletedProcess]:
        folder = tmp_path_factory.mktemp("site")
        command = [sys.executable, "docs/site", "--output", folder / "html", "--work", folder / "work", *arguments]
        done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder / "html", done

    return run


@pytest.fixture(scope="session")
def site(build) -> Path:
    """The folder of the site as it is now."""
    return build()[0]


@pytest.fixture(scope="session")
def published_site(build) -> Path:
    """The folder of the site as it would be with an address."""
    return build("--address", "https://github.com/example/course")[0]
