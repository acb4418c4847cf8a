"""Extraction of features as the course does it, from images to numbers, against the bare backbone."""

import numpy as np
import torch

from benchmarks.measure import Row, compare
from course_utils.features import Extractor

BACKBONE, IMAGES = "efficientnet_lite0", 64


def rows(size: str, threads: int) -> list[Row]:
    """Time of a few batches: reading, enlarging, the backbone, collecting, against the backbone alone."""
    extractor = Extractor(BACKBONE, None if size == "full" else 32)
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, 32, 32, 3), dtype=np.uint8)
    steps = range(0, IMAGES, extractor.batch_size)
    prepared = [extractor._prepared(images[start : start + extractor.batch_size]) for start in steps]

    def bare() -> None:
        with torch.inference_mode():
            for batch in prepared:
                extractor._network(batch)

    return [
        compare(
            lambda: extractor.features(images),
            bare,
            what="feature extraction",
            against="the bare backbone on the same batches",
            size=f"{IMAGES} images at {extractor.size} pixels",
            threads=threads,
            at_most=1.05,
            pairs=7 if size == "full" else 1,
        )
    ]
