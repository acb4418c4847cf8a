"""Arrays one after another, seen as one without being copied together."""

from collections.abc import Sequence

import numpy as np


class Stacked:
    """Arrays [N1, ...], [N2, ...], ... as one array [N1 + N2 + ..., ...] to read from.

    Memory-mapped files stay on the disk: indexing reads the rows that are asked for, and nothing else.
    A slice of rows that lie in one array is a view of it; all else is a copy of these rows.

    Args:
        arrays: of one type, and of one shape but for their number of rows.

    Raises:
        ValueError: if there is none, or they do not fit together.
    """

    def __init__(self, arrays: Sequence[np.ndarray]):
        if not arrays:
            raise ValueError("there is no array to stack")
        kinds = {(array.dtype, array.shape[1:]) for array in arrays}
        if len(kinds) > 1:
            raise ValueError(f"arrays to stack must have one type and one shape of rows, got {sorted(map(str, kinds))}")
        self.arrays = tuple(arrays)
        self._ends = np.cumsum([len(array) for array in arrays])
        self.dtype = arrays[0].dtype
        self.shape = (int(self._ends[-1]), *arrays[0].shape[1:])
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: int | slice | np.ndarray | Sequence[int]) -> np.ndarray:
        """The rows of a number, a slice, or an array of numbers or of truth values."""
        if isinstance(rows, slice):
            view = self._view(rows)
            if view is not None:
                return view
        wanted = np.arange(len(self))[np.asarray(rows) if not isinstance(rows, slice) else rows]
        if wanted.ndim == 0:
            part = int(np.searchsorted(self._ends, wanted, side="right"))
            return self.arrays[part][wanted - self._first(part)]
        found = np.empty((*wanted.shape, *self.shape[1:]), dtype=self.dtype)
        part_of = np.searchsorted(self._ends, wanted, side="right")
        for part, array in enumerate(self.arrays):
            found[part_of == part] = array[wanted[part_of == part] - self._first(part)]
        return found

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if copy is False:
            raise ValueError("stacked arrays cannot be one array without a copy")
        return np.concatenate(self.arrays).astype(dtype or self.dtype, copy=False)

    def _first(self, part: int) -> int:
        """The row of the whole at which an array begins."""
        return int(self._ends[part]) - len(self.arrays[part])

    def _view(self, rows: slice) -> np.ndarray | None:
        """The rows as a view, if they lie in one array."""
        start, stop, step = rows.indices(len(self))
        for part, array in enumerate(self.arrays):
            first = self._first(part)
            if step > 0 and first <= start <= stop <= first + len(array):
                return array[start - first : stop - first : step]
        return None
