"""What the tests of the interactive pieces share: pages of pieces, and their JavaScript run by node."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from course_utils.interactive import Piece
from course_utils.interactive.piece import source


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
