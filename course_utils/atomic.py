"""Writing a file so that it is there whole or not at all."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that appears under its name only when all of it is on the disk.

    Raises:
        OSError: if there is no room or no permission; what was there before is still there.
    """
    partial = path.with_name(f".{path.name}.partial")  # a fixed name: what a killed process left is overwritten
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
