"""What a training run uses of the machine reaches Lightning's Trainer, and trains."""

import shutil

import pytest
import pytorch_lightning as pl

from course_utils.machine import Machine
from course_utils.reverse import train_reverse
from course_utils.training import History


class Seen(pl.Callback):
    """What the Trainer was told."""

    def on_train_start(self, trainer, pl_module) -> None:
        self.precision, self.workers = trainer.precision, trainer.train_dataloader.num_workers
        self.world, self.compiled = trainer.world_size, pl_module._compiler_ctx is not None


def trained(machine: Machine) -> tuple[Seen, History]:
    seen, history = Seen(), History()
    train_reverse(max_epochs=1, checkpoint="none", callbacks=[seen, history], machine=machine)
    return seen, history


def test_the_trainer_is_told_of_devices_nodes_strategy_and_precision():
    machine = Machine(devices=2, num_nodes=3, strategy="ddp", accelerator="cpu", precision="bf16-mixed")
    assert machine.trainer_arguments() == {
        "devices": 2,
        "num_nodes": 3,
        "strategy": "ddp",
        "accelerator": "cpu",
        "precision": "bf16-mixed",
    }


@pytest.mark.slow
def test_half_precision_learns_as_the_whole_one_does():
    seen, half = trained(Machine(accelerator="cpu", precision="bf16-mixed", num_workers=1))
    _, whole = trained(Machine(accelerator="cpu"))
    assert (seen.precision, seen.workers, seen.world, seen.compiled) == ("bf16-mixed", 1, 1, False)
    assert half.train_loss[:10] == pytest.approx(whole.train_loss[:10], abs=0.02)
    assert half.train_loss[:10] != whole.train_loss[:10]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler, and there is no g++")
def test_a_compiled_model_learns_as_the_plain_one_does():
    seen, compiled = trained(Machine(accelerator="cpu", compile=True))
    _, plain = trained(Machine(accelerator="cpu"))
    assert seen.compiled
    assert compiled.train_loss[:20] == pytest.approx(plain.train_loss[:20], rel=1e-3)
