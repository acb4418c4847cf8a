"""The set data set over more and more images: features in a memory-mapped file, an index in memory."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = {"full": (10_000, 1_000_000, 10_000_000), "quick": (10_000, 40_000)}
CLASSES, WIDTH = 100, 128

_PROGRAM = """
import json, sys, time
import numpy as np, psutil, torch
from course_utils.anomaly import SetAnomalyDataset
from course_utils.feature_cache import open_mapped

path, images, classes, width = sys.argv[1], *map(int, sys.argv[2:])
torch.set_num_threads(1)
np.lib.format.open_memmap(path, "w+", np.float32, (images, width))  # a file with holes: zeros, and no disk
features = open_mapped(path)
labels = torch.randint(classes, (images,), generator=torch.Generator().manual_seed(0), dtype=torch.int32)


def held():
    memory = psutil.Process().memory_info()
    return memory.rss, memory.rss - getattr(memory, "shared", 0)  # with and without what is mapped from files


before, begun = held(), time.perf_counter()
data = SetAnomalyDataset(features, labels, 10, train=True)
opening, after_opening = time.perf_counter() - begun, held()
odd = torch.randint(images, (300, 64), generator=torch.Generator().manual_seed(1)).tolist()
for indices in odd[:20]:
    data.__getitems__(indices)
begun = time.perf_counter()
for indices in odd:
    data.__getitems__(indices)
batch = (time.perf_counter() - begun) / len(odd)
after = held()
print(json.dumps({"images": images, "opening": opening, "batch": batch, "index": after_opening[1] - before[1],
                  "grown": after[1] - after_opening[1], "mapped": after[0] - after[1],
                  "asked_for": 320 * 64 * 10 * width * 4}))
"""


@dataclass(frozen=True)
class Growth:
    """What a data set of so many images takes.

    Attributes:
        images: their number.
        opening: seconds until the data set is ready.
        batch: seconds for 64 sets of 10.
        index: bytes of memory that opening it took.
        grown: bytes of memory that 320 batches added.
        mapped: bytes of the file that stayed mapped after them, which the system may take back when it needs memory.
        asked_for: bytes of the features in those batches.
    """

    images: int
    opening: float
    batch: float
    index: float
    grown: float
    mapped: float
    asked_for: float


def measure(size: str) -> list[Growth]:
    """One fresh process for each number of images."""
    found = []
    for images in IMAGES[size]:
        with tempfile.TemporaryDirectory() as folder:
            arguments = (str(Path(folder) / "features.npy"), str(images), str(CLASSES), str(WIDTH))
            done = subprocess.run(
                [sys.executable, "-c", _PROGRAM, *arguments], cwd=ROOT, check=True, capture_output=True, text=True
            )
        found.append(Growth(**json.loads(done.stdout)))
    return found
