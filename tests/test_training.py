import logging
import warnings

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import RichProgressBar
from torch import nn

from course_utils import checkpoints
from course_utils.batches import eval_loader, train_loader
from course_utils.reverse import ReverseDataset, ReversePredictor
from course_utils.schedule import CosineWarmupScheduler
from course_utils.training import History, Loaders, Recipe, load_or_fit, quiet_lightning, recipe_of
from course_utils.training import test as accuracy_on

MODEL = {
    "input_dim": 3,
    "num_classes": 3,
    "model_dim": 16,
    "num_heads": 1,
    "num_layers": 1,
    "lr": 2e-2,
    "warmup": 2,
}
RECIPE = Recipe(model=MODEL, max_epochs=3, batch_size=16, gradient_clip_val=1.0)
STEPS_A_EPOCH = 10


@pytest.fixture(autouse=True)
def _away_from_the_checkout(no_checkpoints):
    """Every test here: no saved models, and logs in a temporary folder."""


def loaders() -> Loaders:
    sizes = {"train": 160, "val": 50, "test": 70}
    sequences = {split: ReverseDataset(3, 4, size, seed=size) for split, size in sizes.items()}
    return Loaders(
        train=train_loader(sequences["train"], 16),
        val=eval_loader(sequences["val"], 16),
        test=eval_loader(sequences["test"], 16),
    )


def trained(recipe: Recipe = RECIPE, **settings) -> ReversePredictor:
    return load_or_fit(ReversePredictor, recipe, loaders(), **{"name": "reverse", "checkpoint": "none"} | settings)


def share_of_right_digits(model: ReversePredictor, dataset: ReverseDataset) -> float:
    with torch.no_grad():
        predicted = model(model.one_hot(dataset.data)).argmax(-1)
    return (predicted == dataset.data.flip(-1)).double().mean().item()


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


class RuinTheLastEpoch(pl.Callback):
    """Makes the weights worthless before the last validation, and notes the loss of each."""

    def __init__(self) -> None:
        self.val_loss: list[float] = []

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.val_loss.append(float(trainer.callback_metrics["val_loss"]))

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.current_epoch == trainer.max_epochs - 1:
            for parameter in pl_module.parameters():
                nn.init.zeros_(parameter)


@pytest.fixture
def saved(monkeypatch):
    """A saved model in place of a checkpoint file, and how often it was asked for."""

    class Saved:
        model = ReversePredictor(**MODEL, max_iters=30)
        loads = 0

    def load(model_class, name):
        Saved.loads += 1
        return Saved.model

    monkeypatch.setattr(checkpoints, "load", load)
    return Saved


@pytest.fixture
def nothing_saved(monkeypatch):
    def load(model_class, name):
        raise checkpoints.CheckpointMissingError(f"the checkpoint {name} is not there")

    monkeypatch.setattr(checkpoints, "load", load)


class TestFit:
    def test_the_model_is_the_best_one_by_validation_and_not_the_last(self):
        ruin, history = RuinTheLastEpoch(), History()
        model = trained(callbacks=[ruin, history])
        best = ruin.val_loss.index(min(ruin.val_loss))
        assert len(ruin.val_loss) == 3
        assert best < 2
        assert history.val_acc[2] < history.val_acc[best] - 0.1
        assert accuracy_on(model, loaders().val) == pytest.approx(history.val_acc[best], abs=1e-6)
        assert all(parameter.any() for name, parameter in model.named_parameters() if name.endswith("weight"))

    def test_it_comes_back_on_the_cpu_and_in_evaluation_mode(self):
        model = trained()
        assert not model.training
        assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}

    def test_the_schedule_ends_with_the_last_step(self):
        history = History()
        model = trained(max_epochs=2, callbacks=[history])
        assert model.hparams.max_iters == 2 * STEPS_A_EPOCH
        scheduler = CosineWarmupScheduler(torch.optim.SGD(model.parameters(), lr=MODEL["lr"]), 2, 2 * STEPS_A_EPOCH)
        expected = [MODEL["lr"] * scheduler.get_lr_factor(step) for step in range(2 * STEPS_A_EPOCH)]
        assert history.learning_rate == pytest.approx(expected)

    def test_a_seed_repeats_the_run_and_another_one_does_not(self):
        one, same, other = (trained(max_epochs=1, seed=seed) for seed in (1, 1, 2))
        assert same_weights(one, same)
        assert not same_weights(one, other)

    def test_history_notes_each_step_and_the_gradient_before_it_is_clipped(self):
        history = History()
        trained(Recipe(MODEL, max_epochs=2, batch_size=16, gradient_clip_val=1e-3), callbacks=[history])
        assert {len(history.train_loss), len(history.learning_rate), len(history.gradient_norm)} == {2 * STEPS_A_EPOCH}
        assert min(history.gradient_norm) > 0.01
        assert history.val_step == [STEPS_A_EPOCH, 2 * STEPS_A_EPOCH]
        assert history.train_loss[0] > history.train_loss[-1]

    def test_two_histories_do_not_share_their_lists(self):
        History().train_loss.append(1.0)
        assert History().train_loss == []

    def test_it_says_nothing_and_warns_of_nothing(self, capfd):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = trained(max_epochs=1)
            accuracy_on(model, loaders().test)
        assert capfd.readouterr() == ("", "")

    def test_it_works_with_a_progress_bar_of_the_terminal(self, monkeypatch):
        monkeypatch.setattr("course_utils.training.progress_callbacks", lambda: [RichProgressBar()])
        assert same_weights(trained(max_epochs=1), trained(max_epochs=1))

    def test_each_run_has_a_log_folder_of_its_own(self, tmp_path):
        for _ in range(2):
            trained(max_epochs=1)
        assert len(list((tmp_path / "runs" / "training").glob("reverse-*"))) == 2


class TestLoadOrFit:
    def test_auto_loads_what_is_saved_and_says_so(self, saved, capsys):
        assert trained(checkpoint="auto") is saved.model
        assert "nothing was trained" in capsys.readouterr().out

    def test_auto_trains_where_nothing_is_saved_and_says_why(self, nothing_saved, capsys):
        assert share_of_right_digits(trained(checkpoint="auto"), loaders().val.dataset) > 0.5
        assert "'reverse'" in capsys.readouterr().out

    def test_required_loads_what_is_saved(self, saved):
        assert trained(checkpoint="required") is saved.model

    def test_required_fails_where_nothing_is_saved(self, nothing_saved):
        with pytest.raises(checkpoints.CheckpointMissingError, match="not there"):
            trained(checkpoint="required")

    def test_none_trains_whatever_is_saved(self, saved):
        assert trained(checkpoint="none", max_epochs=1) is not saved.model
        assert saved.loads == 0

    @pytest.mark.parametrize("checkpoint", ["auto", "required", "none"])
    def test_a_number_of_epochs_trains_that_many_whatever_is_saved(self, saved, checkpoint):
        history = History()
        assert trained(checkpoint=checkpoint, max_epochs=1, callbacks=[history]) is not saved.model
        assert (saved.loads, len(history.val_acc)) == (0, 1)

    @pytest.mark.parametrize(
        "difference", [{"model_dim": 8}, {"num_layers": 2}, {"num_heads": 2}, {"norm_first": True}]
    )
    def test_a_saved_model_of_another_architecture_is_not_taken(self, saved, difference):
        asked = Recipe(MODEL | difference, max_epochs=1, batch_size=16, gradient_clip_val=1.0)
        model = trained(asked, checkpoint="auto")
        assert model is not saved.model
        assert difference.items() <= dict(model.hparams).items()
        ((name, value),) = difference.items()
        with pytest.raises(ValueError, match=f"{name}=.* where {value} is asked for"):
            trained(asked, checkpoint="required")

    def test_a_saved_model_trained_with_other_settings_is_taken(self, saved):
        asked = Recipe(MODEL | {"lr": 0.5, "dropout": 0.3}, max_epochs=1, batch_size=16, gradient_clip_val=1.0)
        assert trained(asked, checkpoint="required") is saved.model

    @pytest.mark.parametrize(
        ("error", "settings", "named"),
        [
            (ValueError, {"checkpoint": "always"}, "auto, required, none, got 'always'"),
            (ValueError, {"max_epochs": 0}, "at least 1.*got 0"),
            (ValueError, {"max_epochs": -3}, "at least 1.*got -3"),
        ],
    )
    def test_unknown_settings_are_refused_by_value(self, saved, error, settings, named):
        with pytest.raises(error, match=named):
            trained(**{"checkpoint": "auto"} | settings)
        assert saved.loads == 0

    def test_an_argument_that_the_model_does_not_have_is_refused_also_where_a_model_is_saved(self, saved):
        with pytest.raises(TypeError, match=r"no argument num_layer; it has: .*num_layers"):
            trained(Recipe(MODEL | {"num_layer": 2}, 1, 16, 1.0), checkpoint="auto")


def test_the_accuracy_counts_every_digit_once_also_of_an_incomplete_batch():
    model, test_loader = trained(max_epochs=1), loaders().test
    assert len(test_loader.dataset) % 16 != 0
    assert accuracy_on(model, test_loader) == pytest.approx(share_of_right_digits(model, test_loader.dataset), abs=1e-6)


class TestRecipeOf:
    def test_arguments_replace_those_of_the_profile_and_leave_it_as_it_was(self):
        recipes = {"quick": RECIPE}
        recipe = recipe_of(recipes, "quick", {"model_dim": 64})
        assert recipe.model == MODEL | {"model_dim": 64}
        assert (recipe.max_epochs, recipe.batch_size, recipe.gradient_clip_val) == (3, 16, 1.0)
        assert recipes["quick"].model["model_dim"] == 16

    def test_an_unknown_profile_is_refused_with_the_known_ones(self):
        with pytest.raises(ValueError, match="one of quick, full, got 'fast'"):
            recipe_of({"quick": RECIPE, "full": RECIPE}, "fast", {})


def test_lightning_speaks_again_after_an_error():
    logger = logging.getLogger("pytorch_lightning")
    level = logger.level
    with pytest.raises(RuntimeError), quiet_lightning():
        assert logger.level == logging.ERROR
        raise RuntimeError
    assert logger.level == level
