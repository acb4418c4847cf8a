"""Batches drawn as whole tensors, which saves the Python work of drawing and stacking item by item."""

from collections.abc import Iterator, Sequence

from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate


class WholeBatch(Sequence):
    """A batch of B items as whole tensors; as a sequence, the items one by one.

    A data set's `__getitems__` returns it. The loaders here take the tensors as they are; a plain DataLoader,
    which expects a list of items to stack, finds that too.
    """

    def __init__(self, *tensors: Tensor):
        self.tensors = tensors  # each [B, ...]

    def __len__(self) -> int:
        """The number B of items."""
        return len(self.tensors[0])

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        """Item `index`, a view of each tensor."""
        return tuple(tensor[index] for tensor in self.tensors)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        """The items in order."""
        return zip(*self.tensors, strict=True)


def take_whole(batch: WholeBatch | list) -> tuple[Tensor, ...]:
    """The collate function that goes with `__getitems__`: the tensors, untouched.

    Items of a data set without whole batches are stacked, as a plain DataLoader does.
    """
    return batch.tensors if isinstance(batch, WholeBatch) else tuple(default_collate(batch))


def train_loader(dataset: Dataset, batch_size: int, num_workers: int = 0) -> DataLoader:
    """Shuffled full batches; an incomplete last batch is left out."""
    if len(dataset) < batch_size:
        raise ValueError(f"a training set of {len(dataset)} items fills no batch of {batch_size}; use smaller batches")
    return DataLoader(dataset, batch_size, shuffle=True, drop_last=True, collate_fn=take_whole, num_workers=num_workers)


def eval_loader(dataset: Dataset, batch_size: int, num_workers: int = 0) -> DataLoader:
    """Every item once, in order."""
    return DataLoader(dataset, batch_size, collate_fn=take_whole, num_workers=num_workers)
