"""Build the site from the committed notebooks: `python docs/site`, or `make site`. No network is needed.

    python docs/site [--output docs/_build/html] [-v]

Warnings are errors.
"""

import argparse
import shutil
import sys
from pathlib import Path

from checked_pages import external, read_all
from sources import HERE, ROOT, gather

BUILD = ROOT / "docs" / "_build"


def main() -> int:
    """Gather the sources, run Sphinx on them, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python docs/site", description="Build the course's site.")
    parser.add_argument("--output", type=Path, default=BUILD / "html", help="folder of the pages")
    parser.add_argument("--work", type=Path, default=BUILD, help="folder for what it takes in between")
    parser.add_argument("--address", help="of the published repository, in place of the setting in pyproject.toml")
    options = parser.parse_args()

    from sphinx.cmd.build import main as sphinx

    gather(options.work / "source", options.address)
    if (options.output / ".buildinfo").is_file():  # an earlier site: pages that are no more must not stay
        shutil.rmtree(options.output)
    arguments = ["-W", "--keep-going", "-q", "--color", "-E", "-j", "auto", "-c", HERE, "-d", options.work / "doctrees"]
    code = sphinx([str(one) for one in [*arguments, options.work / "source", options.output]])
    if code == 0:
        links = external(read_all(options.output.resolve()))["links"]
        (options.work / "external_links.txt").write_text("".join(f"{link}\n" for link in links), encoding="utf-8")
        print(f"The site is at {(options.output / 'index.html').resolve().as_uri()}")
    return code


if __name__ == "__main__":
    sys.exit(main())
