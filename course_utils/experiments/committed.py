"""Results that took too long for a reader's run: measured once, and committed beside the experiment as JSON.

A file holds what was measured ("measured") and how it came about ("made"): the command that makes it anew, seeds,
hardware and versions.
"""

import json
import os
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from course_utils.atomic import write_atomically


def read(path: Path) -> dict[str, Any]:
    """The committed results: "measured", and how they came about ("made")."""
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, measured: Mapping[str, Any], *, seconds: float, seeds: Sequence[int] = (), **facts: Any) -> None:
    """Write what was measured, and how, beside the experiment.

    Args:
        path: of the file, named as the experiment: its command is `python -m` with that name.
        measured: plain data.
        seconds: how long it took.
        seeds: of the repetitions.
        facts: whatever else one must know to repeat it; plain data.
    """
    made = {
        "command": f"python -m course_utils.experiments.{path.stem}",
        "seeds": list(seeds),
        **facts,
        "hardware": f"{os.cpu_count()} CPU cores",
        "minutes": round(seconds / 60, 1),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "numpy")},
    }
    write_atomically(path, (_as_text({"made": made, "measured": measured}) + "\n").encode())


def measure_anew(path: Path, measure: Callable[[], Any], *, seeds: Sequence[int] = (), **facts: Any) -> None:
    """Measure, and write the file with the time that it took; the other arguments are those of `write`."""
    begun = time.monotonic()
    write(path, measure(), seconds=time.monotonic() - begun, seeds=seeds, **facts)
    print(path.name)


def short(number: float) -> float:
    """A number of four significant digits, which is as many as a file of results needs."""
    return float(f"{number:.4g}")


def _as_text(results: Mapping[str, Any]) -> str:
    """The results as JSON, a line for each innermost list, so that a map does not fill a page with single numbers."""
    text = json.dumps(results, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda innermost: " ".join(innermost.group().split()), text)
