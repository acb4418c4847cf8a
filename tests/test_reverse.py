import pytest
import torch
from torch.testing import assert_close

from course_utils.reverse import (
    RECIPES,
    ReverseDataset,
    ReversePredictor,
    measure_reverse,
    reverse_loaders,
    train_reverse,
)
from course_utils.training import test as accuracy_on


def tiny_model(**changes) -> ReversePredictor:
    torch.manual_seed(0)
    settings = {"input_dim": 5, "num_classes": 5, "model_dim": 8, "num_heads": 1, "num_layers": 1}
    return ReversePredictor(**settings | {"lr": 1e-3, "warmup": 0, "max_iters": 10} | changes)


class TestReverseDataset:
    def test_an_item_is_a_sequence_and_its_reversal(self):
        dataset = ReverseDataset(10, 16, size=50, seed=0)
        assert len(dataset) == 50
        for sequence, reversal in dataset:
            assert sequence.dtype == reversal.dtype == torch.int64
            assert sequence.tolist() == reversal.tolist()[::-1]
        assert dataset.data.unique().tolist() == list(range(10))

    def test_a_seed_fixes_the_sequences_and_another_one_changes_them(self):
        one, same, other = (ReverseDataset(10, 16, size=20, seed=seed).data for seed in (1, 1, 2))
        assert torch.equal(one, same)
        assert not torch.equal(one, other)

    def test_a_seed_leaves_the_global_generator_alone_and_none_uses_it(self):
        torch.manual_seed(3)
        state = torch.get_rng_state()
        ReverseDataset(10, 16, size=20, seed=1)
        assert torch.equal(torch.get_rng_state(), state)
        one = ReverseDataset(10, 16, size=20)
        torch.manual_seed(3)
        assert torch.equal(one.data, ReverseDataset(10, 16, size=20).data)

    def test_samples_come_from_a_cpu_generator_and_so_are_the_same_on_every_device(self):
        drawn = torch.randn(3, 2, generator=torch.Generator("cpu").manual_seed(42))
        assert_close(drawn, torch.tensor([[0.3367, 0.1288], [0.2345, 0.2303], [-1.1229, -0.1863]]), atol=1e-4, rtol=0)
        expected = torch.randint(10, (3, 4), generator=torch.Generator("cpu").manual_seed(42))
        assert torch.equal(ReverseDataset(10, 4, size=3, seed=42).data, expected)

    def test_negative_indices_count_from_the_end_and_others_out_of_range_are_refused(self):
        dataset = ReverseDataset(10, 4, size=3, seed=0)
        assert torch.equal(dataset[-1][0], dataset[2][0])
        with pytest.raises(IndexError):
            dataset[3]

    @pytest.mark.parametrize(("num_categories", "seq_len", "size"), [(0, 4, 4), (4, 0, 4), (4, 4, -1)])
    def test_numbers_out_of_range_are_refused_by_value(self, num_categories, seq_len, size):
        with pytest.raises(ValueError, match=f"{num_categories=}, {seq_len=}, {size=}"):
            ReverseDataset(num_categories, seq_len, size)


class TestReversePredictor:
    def test_digits_become_vectors_of_one_1(self):
        vectors = tiny_model().one_hot(torch.tensor([[0, 4]]))
        assert vectors.tolist() == [[[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]]
        assert vectors.dtype == torch.float32

    def test_it_starts_at_the_loss_of_a_guess_and_tells_positions_apart(self):
        model = tiny_model()
        sequences, targets = ReverseDataset(5, 6, size=100, seed=0).__getitems__(range(100)).tensors
        model.log = lambda *arguments, **options: None
        assert model.training_step((sequences, targets), 0).item() == pytest.approx(torch.tensor(5.0).log(), abs=0.5)
        same_digits = model(model.one_hot(torch.zeros(1, 6, dtype=torch.int64)))[0]
        assert (same_digits[0] - same_digits[5]).abs().max() > 0.01

    def test_the_published_checkpoint_is_right_on_every_digit_of_both_sets(self, published_checkpoint):
        model = ReversePredictor.load_from_checkpoint(published_checkpoint, map_location="cpu", weights_only=True)
        loaders = reverse_loaders()
        assert (len(loaders.val.dataset), len(loaders.test.dataset)) == (1_000, 10_000)
        assert accuracy_on(model, loaders.val) == 1.0
        assert accuracy_on(model, loaders.test) == 1.0

    def test_the_published_checkpoint_loads_by_the_plain_call_and_its_settings_are_plain_types(
        self, published_checkpoint
    ):
        model = ReversePredictor.load_from_checkpoint(published_checkpoint)
        assert dict(model.hparams) == {
            **{"input_dim": 10, "model_dim": 32, "num_classes": 10, "num_heads": 1, "num_layers": 1},
            **{"lr": 5e-4, "warmup": 50, "max_iters": 3900},  # 10 epochs of 390 full batches of 128
            **{"dropout": 0.0, "input_dropout": 0.0, "norm_first": False},
        }
        assert {type(value) for value in model.hparams.values()} == {int, float, bool}


class TestReverseLoaders:
    @pytest.mark.parametrize(("profile", "steps"), [("quick", 100), ("full", 390)])
    def test_a_profile_has_its_number_of_steps_and_the_same_evaluation_sets(self, profile, steps):
        loaders = reverse_loaders(profile)
        assert len(loaders.train) == steps
        assert loaders.train.batch_size == 128
        for split in ("val", "test"):
            assert torch.equal(getattr(loaders, split).dataset.data, getattr(reverse_loaders(), split).dataset.data)

    def test_no_split_repeats_sequences_of_another(self):
        splits = [getattr(reverse_loaders(), split).dataset.data for split in ("train", "val", "test")]
        together = torch.cat(splits)
        assert len(together.unique(dim=0)) == len(together)

    def test_an_unknown_profile_is_refused(self):
        with pytest.raises(ValueError, match="quick, full, got 'fast'"):
            reverse_loaders("fast")


class TestTrainReverse:
    def test_the_full_profile_is_the_published_recipe(self):
        recipe = RECIPES["full"]
        assert (recipe.max_epochs, recipe.batch_size, recipe.gradient_clip_val) == (10, 128, 5.0)
        expected = {"model_dim": 32, "num_heads": 1, "num_layers": 1, "dropout": 0.0, "lr": 5e-4, "warmup": 50}
        assert expected.items() <= recipe.model.items()

    def test_it_returns_the_model_and_shares_between_0_and_1(self, no_checkpoints):
        model, metrics = train_reverse(max_epochs=1, model_dim=8)
        assert isinstance(model, ReversePredictor)
        assert model.hparams.model_dim == 8
        assert model.hparams.max_iters == 100
        assert metrics.keys() == {"test_acc", "val_acc"}
        assert all(type(value) is float and 0.05 < value < 0.9 for value in metrics.values())
        assert measure_reverse(model) == metrics

    def test_the_quick_recipe_solves_the_task(self, no_checkpoints):
        _, metrics = train_reverse(checkpoint="none")
        assert metrics["test_acc"] >= 0.999
        assert metrics["val_acc"] >= 0.999

    @pytest.mark.parametrize(
        ("error", "settings", "named"),
        [
            (ValueError, {"profile": "fast"}, "quick, full, got 'fast'"),
            (ValueError, {"checkpoint": "yes"}, "auto, required, none, got 'yes'"),
            (ValueError, {"max_epochs": 0}, "at least 1, .* got 0"),
            (TypeError, {"num_layer": 2}, "num_layer;.* num_layers"),
        ],
    )
    def test_unknown_settings_are_refused_before_anything_is_loaded(self, error, settings, named, monkeypatch):
        monkeypatch.setattr("course_utils.checkpoints.load", lambda *arguments: pytest.fail("loaded"))
        with pytest.raises(error, match=named):
            train_reverse(**settings)
