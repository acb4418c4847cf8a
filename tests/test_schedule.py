import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from course_utils.predictor import TransformerPredictor
from course_utils.schedule import CosineWarmupScheduler
from course_utils.training import quiet_lightning


def schedule(warmup: int, max_iters: int, lr: float = 1.0) -> tuple[torch.optim.Optimizer, CosineWarmupScheduler]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    return optimizer, CosineWarmupScheduler(optimizer, warmup, max_iters)


def rates(optimizer: torch.optim.Optimizer, scheduler: CosineWarmupScheduler, steps: int) -> list[float]:
    """The learning rate of each of the next steps."""
    seen = []
    for _ in range(steps):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return seen


class Noted(TransformerPredictor):
    """A predictor that notes the learning rate of each optimizer step."""

    def on_fit_start(self):
        self.rates = []

    def training_step(self, batch, batch_idx):
        return self(batch[0]).square().mean()

    def on_before_optimizer_step(self, optimizer):
        self.rates.append(optimizer.param_groups[0]["lr"])


def fitted(tmp_path, max_epochs: int, max_iters: int, warmup: int = 4, resume=None, **trainer_args):
    """A model after some epochs of eight batches each, and its Trainer."""
    model = Noted(2, 4, 1, num_heads=1, num_layers=1, lr=1.0, warmup=warmup, max_iters=max_iters)
    batches = DataLoader(TensorDataset(torch.ones(8, 3, 2)), batch_size=1)
    resuming = {"ckpt_path": resume, "weights_only": True} if resume else {}
    with quiet_lightning():
        trainer = pl.Trainer(
            accelerator="cpu",
            max_epochs=max_epochs,
            default_root_dir=tmp_path,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            **trainer_args,
        )
        trainer.fit(model, batches, **resuming)
    return model, trainer


def test_the_factor_is_0_at_the_start_and_from_the_horizon_on():
    _, scheduler = schedule(warmup=10, max_iters=100)
    factors = [scheduler.get_lr_factor(step) for step in (0, 1, 5, 10, 50, 100, 150, 200)]
    assert factors == pytest.approx([0, 0.099975, 0.496922, 0.975528, 0.5, 0, 0, 0], abs=1e-6)
    assert factors[-3:] == [0.0, 0.0, 0.0]


def test_the_optimizer_gets_the_factor_of_each_step():
    optimizer, scheduler = schedule(warmup=3, max_iters=9, lr=0.5)
    seen = rates(optimizer, scheduler, 12)
    assert seen == pytest.approx([0.5 * scheduler.get_lr_factor(step) for step in range(12)], abs=1e-12)
    assert seen[9:] == [0.0] * 3


def test_no_warmup_starts_at_the_full_rate():
    optimizer, scheduler = schedule(warmup=0, max_iters=4)
    assert rates(optimizer, scheduler, 4) == pytest.approx([1.0, 0.853553, 0.5, 0.146447], abs=1e-6)


def test_a_warmup_beyond_the_horizon_still_ends_at_0():
    _, scheduler = schedule(warmup=20, max_iters=10)
    assert [scheduler.get_lr_factor(step) for step in (5, 10, 15)] == [0.125, 0.0, 0.0]


@pytest.mark.parametrize("lr", [0.5, torch.tensor(0.5)])
def test_rates_and_factors_are_plain_floats(lr):
    optimizer, scheduler = schedule(warmup=3, max_iters=9, lr=lr)
    assert {type(scheduler.get_lr_factor(step)) for step in (0, 1, 5, 9, 20)} == {float}
    assert {type(rate) for rate in scheduler.get_lr()} == {float}
    assert float(optimizer.param_groups[0]["lr"]) == 0.0


def test_each_parameter_group_keeps_its_own_rate():
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in (1.0, 0.1)]
    optimizer = torch.optim.SGD(groups)
    scheduler = CosineWarmupScheduler(optimizer, 0, 4)
    optimizer.step()
    scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.853553, 0.0853553], abs=1e-6)


def test_the_state_dict_loads_with_weights_only_and_goes_on_along_the_curve(tmp_path):
    optimizer, scheduler = schedule(warmup=4, max_iters=16)
    rates(optimizer, scheduler, 8)
    torch.save([optimizer.state_dict(), scheduler.state_dict()], tmp_path / "state.pt")

    optimizer_again, scheduler_again = schedule(warmup=4, max_iters=16)
    optimizer_state, scheduler_state = torch.load(tmp_path / "state.pt", weights_only=True)
    optimizer_again.load_state_dict(optimizer_state)
    scheduler_again.load_state_dict(scheduler_state)
    assert rates(optimizer_again, scheduler_again, 4) == pytest.approx([0.5, 0.4025, 0.3087, 0.2222], abs=1e-4)


def test_a_run_resumed_from_a_checkpoint_does_not_restart_the_schedule(tmp_path):
    model, trainer = fitted(tmp_path, max_epochs=1, max_iters=16)
    assert model.rates == pytest.approx([model.lr_schedulers().get_lr_factor(step) for step in range(8)])
    trainer.save_checkpoint(tmp_path / "epoch1.ckpt")
    resumed, _ = fitted(tmp_path, max_epochs=2, max_iters=16, resume=tmp_path / "epoch1.ckpt")
    assert resumed.rates[:4] == pytest.approx([0.5, 0.4025, 0.3087, 0.2222], abs=1e-4)
    assert len(resumed.rates) == 8


@pytest.mark.parametrize(("accumulate", "steps"), [(1, 16), (2, 8), (3, 6)])
def test_it_counts_optimizer_steps_under_gradient_accumulation(tmp_path, accumulate, steps):
    model, trainer = fitted(tmp_path, max_epochs=2, max_iters=steps, accumulate_grad_batches=accumulate)
    assert trainer.global_step == steps
    assert model.rates == pytest.approx([model.lr_schedulers().get_lr_factor(step) for step in range(steps)])
    assert model.lr_schedulers().get_last_lr() == [0.0]


@pytest.mark.parametrize(("warmup", "max_iters"), [(-1, 10), (5, 0), (5, -3)])
def test_numbers_out_of_range_are_refused_by_value(warmup, max_iters):
    with pytest.raises(ValueError, match=f"{warmup=} and {max_iters=}"):
        schedule(warmup, max_iters)
