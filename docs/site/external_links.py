"""Ask each address outside of the site whether it is still there: `python docs/site/external_links.py [FILE]`.

The addresses are the lines of docs/_build/external_links.txt, which the build of the site writes. One that answers that
it is gone (404, 410), or has no host any more, is reported, and the exit code is 1. One that is busy or refuses
programs is only named.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

TIMEOUT = 30  # seconds
TRIES = 3
GONE = (404, 410)
HEADERS = {"User-Agent": "Mozilla/5.0 (a weekly check of the course's links)"}


def state(url: str, get=requests.get) -> str:
    """What became of an address: `there`, `gone: ...` or `not known: ...`.

    Args:
        url: the address.
        get: what asks for it.
    """
    problem = ""
    for _ in range(TRIES):
        try:
            with get(url, timeout=TIMEOUT, headers=HEADERS, stream=True) as answer:
                if answer.status_code in GONE:
                    return f"gone: {answer.status_code}"
                if answer.ok:
                    return "there"
                problem = f"not known: {answer.status_code}"
        except requests.ConnectionError as error:
            problem = f"gone: {type(error).__name__}"
        except requests.RequestException as error:
            problem = f"not known: {type(error).__name__}"
    return problem


def main(path: Path) -> int:
    """Print each address with its state, and return the exit code."""
    links = path.read_text(encoding="utf-8").split()
    with ThreadPoolExecutor(8) as pool:
        states = dict(zip(links, pool.map(state, links), strict=True))
    for url, what in states.items():
        print(f"{what:<24} {url}")
    return int(any(what.startswith("gone") for what in states.values()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/external_links.txt")))
