"""What the tests of the interactive pieces share: pages of pieces, and their JavaScript run by node."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from course_utils.checkpoints import load
from course_utils.interactive import Piece, reverse_live
from course_utils.interactive.piece import source
from course_utils.reverse import CHECKPOINT, ReversePredictor


def page_of(folder: Path, *pieces: Piece) -> Path:
    """A page that holds nothing but pieces, in the reader's own colours."""
    path = folder / "page.html"
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Pieces</title>'
        '<meta name="viewport" content="width=device-width"><style>:root { color-scheme: light dark }</style></head>'
        f"<body><main><h1>Pieces</h1>{''.join(piece.html for piece in pieces)}</main></body></html>",
        encoding="utf-8",
    )
    return path


def run_javascript(files: Sequence[str], expression: str, **values: Any) -> Any:
    """What an expression gives in node after files of the package; `values` are variables of it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    program = "\n".join(source(name) for name in files)
    given = json.dumps(values)
    program += (
        f"\nconst given = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n"
        f"const {{ {', '.join(values)} }} = given;\nprocess.stdout.write(JSON.stringify({expression}));"
    )
    done = subprocess.run([node, "-e", program], input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def random_maps(layers: int, heads: int, rows: int, columns: int | None = None, seed: int = 0, sharpness: float = 3.0):
    """Attention maps [H, T, T] of each layer: the softmax of random numbers."""
    shape = (layers, heads, rows, columns or rows)
    powers = np.exp(sharpness * np.random.default_rng(seed).normal(size=shape))
    return list(powers / powers.sum(axis=-1, keepdims=True))


def saved_reverse_model() -> ReversePredictor:
    """The trained model of the course."""
    return load(ReversePredictor, CHECKPOINT).eval()


def reverse_piece(model: ReversePredictor, length: int = 16, seed: int = 3) -> Piece:
    """The live model, beginning with random digits."""
    digits = torch.randint(10, (1, length), generator=torch.Generator().manual_seed(seed))
    inputs = model.one_hot(digits)
    with torch.no_grad():
        logits = model(inputs)[0]
    return reverse_live(model.state_dict(), digits[0], logits, model.get_attention_maps(inputs)[0][0, 0])


def digit_sets() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Four sets of ten of scikit-learn's digits: images, the odd ones' positions, and a model's made-up probabilities.

    The model is right about all sets but the last.
    """
    digits = load_digits()
    images = np.round(digits.images * 255 / 16).astype(np.uint8)
    chosen = [
        [*np.flatnonzero(digits.target == label)[:9], np.flatnonzero(digits.target == label + 1)[0]]
        for label in range(4)
    ]
    odd = np.array([9, 9, 9, 9])
    probabilities = np.full((4, 10), 0.02)
    probabilities[:3, 9] = 1 - 0.02 * 9
    probabilities[3, 0] = 1 - 0.02 * 9
    return images[np.array(chosen)], odd, probabilities
