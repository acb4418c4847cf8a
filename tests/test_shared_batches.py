"""Several processes share each batch: the same steps as one process, and every item of an evaluation once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.machine import Machine
from course_utils.shared_batches import EachItemOnce

ROOT = Path(__file__).resolve().parent.parent


@given(size=st.integers(1, 300), batch_size=st.integers(1, 70), processes=st.integers(1, 5))
def test_every_item_is_evaluated_once_and_no_process_waits_for_another(size, batch_size, processes):
    if size < processes:
        with pytest.raises(ValueError, match=f"{processes} processes cannot share {size} items"):
            EachItemOnce(size, batch_size, 0, processes)
        return
    shares = [EachItemOnce(size, batch_size, rank, processes) for rank in range(processes)]
    assert sorted(index for share in shares for batch in share for index in batch) == list(range(size))
    assert len({len(share) for share in shares}) == 1
    lengths = {len(batch) for share in shares for batch in share}
    assert min(lengths) >= 1
    assert max(lengths) <= max(2, batch_size // processes)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"devices": 0}, "devices"),
        ({"devices": "two"}, "'two'"),
        ({"num_nodes": 0}, "num_nodes"),
        ({"num_workers": -1}, "-1"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        Machine(**settings)


# Training with one and with two processes of the CPU, each a program of its own.

PROGRAM = """
import json, sys, torch
import pytorch_lightning as pl
from course_utils.anomaly import train_anomaly
from course_utils.machine import Machine
from course_utils.reverse import train_reverse
from course_utils.training import History

class Seen(pl.Callback):
    '''What each process was given.'''

    def __init__(self):
        self.trained, self.validated = [], []

    def on_fit_start(self, trainer, pl_module):
        self.folder = trainer.default_root_dir

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.trained.append(batch[1].tolist())

    def on_validation_batch_start(self, trainer, pl_module, batch, batch_idx, dataloader_idx=0):
        self.validated.append(batch[1].tolist())

if __name__ == "__main__":
    task, devices, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    history, seen = History(), Seen()
    machine = Machine(devices=devices, accelerator="cpu", strategy="ddp" if devices > 1 else "auto")
    train = {"reverse": train_reverse, "anomaly": train_anomaly}[task]
    model, accuracy = train(max_epochs=epochs, checkpoint="none", callbacks=[history, seen], machine=machine)
    rank = torch.distributed.get_rank() if devices > 1 else 0
    told = {"loss": history.train_loss, "val_acc": history.val_acc, "accuracy": accuracy,
            "trained": seen.trained, "validated": seen.validated, "folder": str(seen.folder)}
    open(f"{task}-{devices}-{rank}.json", "w").write(json.dumps(told))
"""


def run(folder: Path, task: str, devices: int, epochs: int) -> list[dict]:
    """What each process tells of a training run."""
    (folder / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH_CHECKPOINT": str(folder)}
    command = [sys.executable, "program.py", task, str(devices), str(epochs)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((folder / f"{task}-{devices}-{rank}.json").read_text()) for rank in range(devices)]


@pytest.fixture(scope="module")
def reverse(tmp_path_factory) -> dict[int, list[dict]]:
    folder = tmp_path_factory.mktemp("reverse")
    return {devices: run(folder, "reverse", devices, 1) for devices in (1, 2)}


@pytest.mark.slow
def test_two_processes_reverse_with_the_loss_curve_of_one(reverse):
    (alone,), together = reverse[1], reverse[2]
    assert len(alone["loss"]) == 100
    for process in together:
        assert process["loss"] == pytest.approx(alone["loss"], rel=1e-3)
        assert process["val_acc"] == pytest.approx(alone["val_acc"], abs=2e-4)
        assert process["accuracy"] == pytest.approx(alone["accuracy"], abs=2e-4)


@pytest.mark.slow
def test_two_processes_share_the_batches_of_one(reverse):
    (alone,), together = reverse[1], reverse[2]
    for step, whole in enumerate(alone["trained"]):
        shares = [process["trained"][step] for process in together]
        assert [len(share) for share in shares] == [64, 64]
        assert sorted(shares[0] + shares[1]) == sorted(whole)


@pytest.mark.slow
def test_checkpoints_are_written_once(reverse):
    first, second = (Path(process["folder"]) for process in reverse[2])
    assert len(list(first.rglob("*.ckpt"))) == 1
    assert not second.exists()


@pytest.mark.slow
def test_on_sets_draws_differ_each_set_is_evaluated_once_and_the_result_is_as_good(tmp_path):
    first, second = run(tmp_path, "anomaly", 2, 12)
    drawn = [process["trained"][0] for process in (first, second)]
    assert [len(sets) for sets in drawn] == [32, 32]
    companions = [{image for one_set in sets for image in one_set[:-1]} for sets in drawn]
    assert len(companions[0] & companions[1]) < 0.6 * len(companions[0])
    last_validation = [process["validated"][-len(process["validated"]) // 12 :] for process in (first, second)]
    odd = sorted(one_set[-1] for batches in last_validation for batch in batches for one_set in batch)
    assert odd == list(range(len(odd)))
    assert first["accuracy"] == second["accuracy"]
    assert first["accuracy"]["test_acc"] > 0.9
