"""Measure everything and write the table: `python -m benchmarks`, a quarter of an hour on two quiet cores."""

import argparse
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from rich.progress import track

from benchmarks import attention, commands, compiled, extraction, growth, sampler, training
from benchmarks.measure import Row
from benchmarks.page import write

HERE = Path(__file__).resolve().parent
BENCHMARKS: dict[str, tuple[Callable[[str, int], list[Row]], tuple[int, ...]]] = {  # and the threads to run it with
    "attention": (attention.rows, (1, 2)),
    "memory": (lambda size, threads: attention.memory(size), (1,)),
    "step": (training.step, (1,)),
    "recipe": (training.recipe, (1,)),
    "sampler": (sampler.rows, (1, 2)),
    "sets": (sampler.share, (1, 2)),
    "extraction": (extraction.rows, (1, 2)),
    "batch": (commands.batch, (1,)),
    "compiled": (compiled.rows, (1,)),
    "imports": (commands.imports, (1,)),
}


def main(arguments: list[str]) -> int:
    """Run what is asked for; 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join([*BENCHMARKS, 'growth'])}; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that all of it runs")
    parser.add_argument("--output", type=Path, default=HERE, help="folder of the page and its figures")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {*BENCHMARKS, "growth"}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join([*BENCHMARKS, 'growth'])}")
    names = options.names or [*BENCHMARKS, "growth"]
    size = "quick" if options.quick else "full"

    rows: dict[str, list[Row]] = {}
    for name in track([name for name in names if name in BENCHMARKS], description="benchmarks"):
        measure, threads = BENCHMARKS[name]
        rows[name] = [row for count in threads for row in measure(size, count)]
    grown = growth.measure(size) if "growth" in names else []
    write(options.output, rows, grown, made={"command": "python -m benchmarks", "size": size, **machine()})
    late = [row for found in rows.values() for row in found if not row.holds]
    for row in late:
        print(f"{row.what}, {row.size}, {row.threads} threads: {row.ratio:.2f}, at most {row.at_most} is promised")
    return 1 if late else 0


def machine() -> dict[str, str]:
    """On what it was measured; no name of the machine."""
    return {
        "processor": f"{os.cpu_count()} cores, {platform.machine()}",
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "pytorch-lightning", "numpy")},
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
