"""Share each batch among the devices of a run, so that its steps are the same on any number of them."""

import math
from collections.abc import Iterator

import course_utils.quiet  # noqa: F401

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Sampler
from torch.utils.data.distributed import DistributedSampler


class EachItemOnce(Sampler[list[int]]):
    """The share of one of several processes in an evaluation: every item in one batch of one process.

    All processes have equally many batches, so that none waits for another in vain; their sizes differ by one at most.
    (`DistributedSampler` gives equally many items to all, and for that counts some of them twice.)

    Args:
        size: number of items.
        batch_size: items of a batch of all processes together.
        rank: number of this process, from 0.
        processes: how many there are.

    Raises:
        ValueError: if there are fewer items than processes.
    """

    def __init__(self, size: int, batch_size: int, rank: int = 0, processes: int = 1):
        if size < processes:
            raise ValueError(f"{processes} processes cannot share {size} items; use fewer")
        of_each = max(1, batch_size // processes)
        mine = torch.arange(size)[rank::processes]
        most, fewest = math.ceil(size / processes), size // processes
        count = min(math.ceil(most / of_each), fewest)  # with fewer items than batches, a process would have none
        self.batches = [batch.tolist() for batch in mine.tensor_split(count)]

    def __iter__(self) -> Iterator[list[int]]:
        """The indices of each batch."""
        return iter(self.batches)

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.batches)


class SharedBatches(pl.LightningDataModule):
    """The batches of two loaders, shared among the processes of the Trainer that asks for them.

    The order of training is drawn from the seed and the epoch, and a batch is cut between the processes: the same items
    make a step however many processes there are.

    Args:
        train: gives the data set and the size of the batches of all processes together.
        val: the same for validation.
        seed: of the order.
        num_workers: processes that draw the batches; None for as many as the loaders have.
    """

    def __init__(self, train: DataLoader, val: DataLoader, *, seed: int, num_workers: int | None = None):
        super().__init__()
        self._train, self._val, self._seed, self._num_workers = train, val, seed, num_workers

    def setup(self, stage: str) -> None:
        """Let what is drawn at random (sets, dropout) differ between the processes."""
        if self.trainer.global_rank:
            torch.manual_seed(self._seed + self.trainer.global_rank)

    def train_dataloader(self) -> DataLoader:
        """Shuffled full batches."""
        processes, rank = self.trainer.world_size, self.trainer.global_rank
        whole = self._train.batch_size
        if whole % processes:
            raise ValueError(
                f"a batch of {whole} cannot be shared evenly by {processes} devices; "
                "use a number of devices that divides it"
            )
        sampler = DistributedSampler(
            self._train.dataset, processes, rank, shuffle=True, seed=self._seed, drop_last=True
        )
        return self._loader(self._train, batch_size=whole // processes, sampler=sampler, drop_last=True)

    def val_dataloader(self) -> DataLoader:
        """Every item once, in all processes together."""
        size, batch_size = len(self._val.dataset), self._val.batch_size
        batches = EachItemOnce(size, batch_size, self.trainer.global_rank, self.trainer.world_size)
        return self._loader(self._val, batch_sampler=batches)

    def _loader(self, loader: DataLoader, **how) -> DataLoader:
        num_workers = loader.num_workers if self._num_workers is None else self._num_workers
        return DataLoader(loader.dataset, collate_fn=loader.collate_fn, num_workers=num_workers, **how)
