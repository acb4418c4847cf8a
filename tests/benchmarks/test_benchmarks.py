"""The benchmarks: their arithmetic by hand, and that all of them run, in small sizes."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.growth import Growth
from benchmarks.measure import Row, row_of, seconds_of_pairs
from benchmarks.page import write

ROOT = Path(__file__).resolve().parents[2]
FACTS = {"what": "ours", "against": "theirs", "size": "T = 4", "threads": 1, "x": 4.0}
PROGRAM = "import json, scaling; print(scaling.text(json.loads(scaling.RESULTS.read_text())), end='')"
MADE = {
    "command": "python -m benchmarks",
    "processor": "2 cores, x",
    "system": "Linux",
    "python": "3",
    "torch": "2",
    "pytorch-lightning": "2",
}


def test_the_ratio_is_the_median_over_the_pairs():
    row = row_of([1.0, 4.0, 3.0, 8.0, 5.0], [1.0, 2.0, 3.0, 2.0, 1.0], at_most=2.0, **FACTS)
    assert row.ratios == (1.0, 2.0, 1.0, 4.0, 5.0)
    assert (row.ratio, row.quartiles) == (2.0, (1.0, 4.0))
    assert (row.ours, row.theirs) == (4.0, 2.0)
    assert row.holds


def test_a_ratio_above_what_is_promised_does_not_hold():
    assert not row_of([2.1], [1.0], at_most=2.0, **FACTS).holds
    assert row_of([2.1], [1.0], at_most=None, **FACTS).holds
    assert row_of([2.1, 2.3], [1.0, 1.0], at_most=None, **FACTS).quartiles == (2.1, 2.3)


def test_both_are_measured_as_often_and_in_turn():
    calls = []
    ours, theirs = seconds_of_pairs(lambda: calls.append("o"), lambda: calls.append("t"), threads=1, pairs=4)
    assert len(ours) == len(theirs) == 4
    assert min(*ours, *theirs) > 0
    blocks = "".join(key for key, _ in itertools.groupby(calls))
    assert blocks == "ototot"  # once each to warm up, then theirs first and ours first in turn


def test_the_page_says_what_is_kept_and_what_is_not(tmp_path):
    rows: dict[str, list[Row]] = {
        "attention": [row_of([1.0], [1.0], at_most=1.1, **FACTS), row_of([3.0], [1.0], at_most=1.1, **FACTS)]
    }
    grown = [Growth(10, 1.0, 0.001, 100, 0, 2**20, 50), Growth(100, 2.0, 0.001, 1000, 0, 2**20, 50)]
    write(tmp_path, rows, grown, MADE)
    page = (tmp_path / "README.md").read_text()
    assert "| ours | theirs | T = 4 | 1 | 1 | 1 to 1 | 1.10 | kept |" in page
    assert "| ours | theirs | T = 4 | 1 | 3 | 3 to 3 | 1.10 | **not kept** |" in page
    assert "| 100 | 2 | 1 | 0 | 0 | 1 |" in page
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "results.json", "attention.png", "growth.png"}
    assert json.loads((tmp_path / "results.json").read_text())["rows"]["attention"][1]["ours"] == 3.0


def test_the_committed_page_is_of_the_committed_numbers(tmp_path):
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    rows = {
        name: [Row(**{**row, "ratios": tuple(row["ratios"])}) for row in found]
        for name, found in results["rows"].items()
    }
    assert set(rows) == {
        "attention",
        "memory",
        "step",
        "recipe",
        "sampler",
        "sets",
        "extraction",
        "batch",
        "compiled",
        "imports",
    }
    write(tmp_path, rows, [Growth(**growth) for growth in results["growth"]], results["made"])
    assert (tmp_path / "README.md").read_text() == (ROOT / "benchmarks" / "README.md").read_text()


def test_the_page_on_scaling_is_of_the_committed_numbers():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT / "docs", capture_output=True, text=True, check=True
    )
    assert done.stdout == (ROOT / "docs" / "scaling.md").read_text()


def test_an_unknown_name_is_refused():
    done = subprocess.run([sys.executable, "-m", "benchmarks", "atention"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "unknown: atention; there are attention, memory" in done.stderr


@pytest.mark.slow
def test_all_of_them_run_in_small_sizes(tmp_path):
    names = ["attention", "memory", "step", "recipe", "sampler", "sets", "imports", "growth"]
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", str(tmp_path), *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode in (0, 1), done.stderr  # 1: a machine at work on other things may be late
    page = (tmp_path / "README.md").read_text()
    for what in ("attention layer, forward and backward", "peak memory", "training step", "set sampler", "import"):
        assert what in page
    assert (tmp_path / "growth.png").is_file()


@pytest.mark.slow
def test_the_script_for_a_gpu_runs_on_a_cpu():
    command = [sys.executable, "-m", "benchmarks.gpu", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "attention in bfloat16: largest error" in done.stdout
    assert "reverse, quick recipe" in done.stdout
    assert done.stdout.count("as promised") == 4  # the four precisions, and nothing else is promised in small sizes
    assert "NOT" not in done.stdout
