"""What a training run uses of the machine: devices, nodes, numbers of half the length, compiled code."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Machine:
    """What of the machine to use; the default is one device, as is best for small models.

    What a batch is does not depend on it: several devices share each batch of the recipe, so that a run has the same
    steps on any number of them.

    Attributes:
        devices: how many devices of each node (with accelerator "cpu": processes), or "auto" for all.
        num_nodes: how many nodes.
        strategy: how devices work together, by Lightning's names: "auto", "ddp", "ddp_notebook", "fsdp", ...
        accelerator: "auto" takes a GPU if there is one; else "cpu", "cuda" or "mps".
        precision: "32-true", or "bf16-mixed" for matrix products of half the length, on a GPU that has them.
        compile: compile the model with `torch.compile`; it takes some time to begin and needs a C++ compiler.
        num_workers: processes of each device that draw batches; 0 draws them where the model runs.

    Raises:
        ValueError: for a number that is out of range.
    """

    devices: int | str = 1
    num_nodes: int = 1
    strategy: str = "auto"
    accelerator: str = "auto"
    precision: str = "32-true"
    compile: bool = False
    num_workers: int = 0

    def __post_init__(self):
        devices = self.devices
        if devices != "auto" and not (isinstance(devices, int) and devices >= 1):
            raise ValueError(f"devices must be a number from 1, or 'auto' for all that there are, got {devices!r}")
        if self.num_nodes < 1 or self.num_workers < 0:
            raise ValueError(
                f"num_nodes must be at least 1 and num_workers at least 0, got {self.num_nodes=}, {self.num_workers=}"
            )

    def trainer_arguments(self) -> dict[str, Any]:
        """What of it Lightning's Trainer is told; the rest concerns the model and the batches."""
        names = ("devices", "num_nodes", "strategy", "accelerator", "precision")
        return {name: getattr(self, name) for name in names}
