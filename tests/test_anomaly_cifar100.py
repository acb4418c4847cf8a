"""Set anomaly on CIFAR-100: with real images where they are there, and with the published model's shapes."""

from pathlib import Path

import pytest
import torch

from course_utils import checkpoints, images, registry
from course_utils.anomaly import (
    AnomalyPredictor,
    SetAnomalyDataset,
    anomaly_datasets,
    checkpoint_name,
    measure_anomaly,
    recipes_for,
    train_anomaly,
)
from course_utils.feature_cache import cached_features
from course_utils.images import ImageSet, load_images, stratified_cut
from course_utils.rules import cosine_rule

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SIZE = 96  # pixels; a fifth of the time that 224 take


@pytest.fixture
def cut(monkeypatch, tmp_path) -> ImageSet:
    """600 real images of 20 classes, in the place of CIFAR-100; their features go to a temporary folder."""
    pytest.importorskip("efficientnet_lite_pytorch", reason="the extra 'lite' is not installed")
    if not (SHARED / "cifar100").is_dir():
        pytest.skip("the images of CIFAR-100 are not beside this checkout")
    monkeypatch.setenv("PATH_DATASETS", str(SHARED))
    monkeypatch.setenv("PATH_FEATURES", str(tmp_path / "features"))
    cut = stratified_cut(load_images("cifar100"), list(range(2, 100, 5)), {"train": 9, "val": 9, "test": 12})
    monkeypatch.setitem(images._SOURCES, "cifar100", lambda: cut)
    return cut


def test_real_images_give_features_that_tell_the_odd_one(cut, no_checkpoints):
    features = cached_features(cut, "efficientnet_lite0", SIZE)
    assert features.shape == (600, 1280)
    centre = features[cut.splits["train"]].mean(dim=0)
    for split, data in anomaly_datasets(cut, features, seed=1).items():
        sets, _, positions = data.__getitems__(range(len(data))).tensors
        from_0, from_the_mean = ((cosine_rule(sets, c) == positions).float().mean() for c in (None, centre))
        assert 0.55 < from_0 < from_the_mean < 0.95, split

    settings = {"images": "cifar100", "backbone": "efficientnet_lite0", "image_size": SIZE}
    model, metrics = train_anomaly(**settings, max_epochs=20, model_dim=64, lr=3e-3, warmup=0)
    assert model.hparams.input_dim == 1280
    assert metrics.keys() == {"test_acc", "val_acc", "train_acc"}
    assert metrics["train_acc"] > 0.4  # after forty steps; guessing gives 0.1
    assert measure_anomaly(model, **settings) == metrics


def test_a_set_larger_than_its_class_is_refused_before_features_are_computed(cut, monkeypatch):
    monkeypatch.setattr("course_utils.anomaly.cached_features", lambda *arguments: pytest.fail("computed"))
    with pytest.raises(ValueError, match=r"has 9 images, but a set of set_size=11 needs 10"):
        train_anomaly(images="cifar100", backbone="efficientnet_lite0", set_size=11)
    with pytest.raises(ValueError, match="quick, full, got 'fast'"):
        train_anomaly(images="cifar100", backbone="efficientnet_lite0", profile="fast")


def test_the_real_images_are_those_of_the_manifest_and_the_splits_balanced(monkeypatch):
    if not (SHARED / "cifar100").is_dir():
        pytest.skip("the images of CIFAR-100 are not beside this checkout")
    monkeypatch.setenv("PATH_DATASETS", str(SHARED))
    image_set = load_images("cifar100")
    counts = {
        split: torch.bincount(torch.from_numpy(image_set.labels[rows])) for split, rows in image_set.splits.items()
    }
    assert {split: set(count.tolist()) for split, count in counts.items()} == {
        "train": {450},
        "val": {50},
        "test": {100},
    }
    part = slice(0, 500)  # canonical: by hash within the first class
    order = images.canonical_order(image_set.images[part], image_set.labels[part])
    assert order.tolist() == list(range(500))


def test_checkpoints_of_other_features_have_other_names():
    assert checkpoint_name("digits", "pixels") == "anomaly_digits_pixels"
    assert checkpoint_name("cifar100", "resnet34", 224) == checkpoint_name("cifar100", "resnet34")
    assert checkpoint_name("cifar100", "resnet34", 96) == "anomaly_cifar100_resnet34_96"


def test_photographs_have_a_quick_recipe_of_their_own_and_share_the_published_one():
    assert recipes_for("cifar100")["full"] == recipes_for("digits")["full"]
    assert recipes_for("cifar100")["quick"].max_epochs < recipes_for("digits")["quick"].max_epochs


def test_rows_choose_the_images_of_a_split_out_of_the_features_of_all():
    features = torch.arange(20.0)[:, None]
    rows = torch.tensor([19, 3, 4, 8, 7, 11])
    data = SetAnomalyDataset(features, [0, 0, 0, 1, 1, 1], set_size=3, rows=rows)
    for number, (seen, members, _) in enumerate(data):
        assert members[-1] == number
        assert torch.equal(seen[:, 0], rows[members].float())


@pytest.mark.parametrize(
    ("rows", "named"), [([0, 1], r"rows must be \[N\] like the labels, got \[2\]"), ([0, 1, 2, 9], "0 and 4.*0 to 9")]
)
def test_rows_that_do_not_fit_are_refused(rows, named):
    with pytest.raises(ValueError, match=named):
        SetAnomalyDataset(torch.zeros(5, 2), [0, 0, 1, 1], set_size=2, rows=rows)


class TestPublished:
    """The checkpoint that was published with the tutorial: ResNet-34's 512 features, width 256, 4 layers, 4 heads."""

    HYPER_PARAMETERS = {  # noqa: RUF012
        "input_dim": 512,
        "model_dim": 256,
        "num_classes": 1,
        "num_heads": 4,
        "num_layers": 4,
        "lr": 5e-4,
        "warmup": 100,
        "max_iters": 70_200,
        "dropout": 0.1,
        "input_dropout": 0.1,
    }
    OUTSIDE_THE_LAYERS = {  # noqa: RUF012
        "input_net.1.weight": (256, 512),
        "input_net.1.bias": (256,),
        "output_net.0.weight": (256, 256),
        "output_net.0.bias": (256,),
        "output_net.1.weight": (256,),
        "output_net.1.bias": (256,),
        "output_net.4.weight": (1, 256),
        "output_net.4.bias": (1,),
    }
    OF_A_LAYER = {  # noqa: RUF012
        "self_attn.qkv_proj.weight": (768, 256),
        "self_attn.qkv_proj.bias": (768,),
        "self_attn.o_proj.weight": (256, 256),
        "self_attn.o_proj.bias": (256,),
        "linear_net.0.weight": (512, 256),
        "linear_net.0.bias": (512,),
        "linear_net.3.weight": (256, 512),
        "linear_net.3.bias": (256,),
        "norm1.weight": (256,),
        "norm1.bias": (256,),
        "norm2.weight": (256,),
        "norm2.bias": (256,),
    }

    @pytest.fixture
    def published(self, no_checkpoints, monkeypatch, tmp_path) -> dict[str, torch.Tensor]:
        """A file of the published names and shapes, with weights of our own, registered in its place."""
        shapes = self.OUTSIDE_THE_LAYERS | {
            f"transformer.layers.{layer}.{name}": shape for layer in range(4) for name, shape in self.OF_A_LAYER.items()
        }
        generator = torch.Generator().manual_seed(0)
        state = {name: torch.randn(shape, generator=generator) / 16 for name, shape in shapes.items()}
        path = no_checkpoints / "SetAnomalyTask.ckpt"
        parts = {"epoch": 99, "global_step": 70_200, "pytorch-lightning_version": "1.0.2", "hparams_name": "kwargs"}
        torch.save({**parts, "state_dict": state, "hyper_parameters": self.HYPER_PARAMETERS}, path)
        entry = registry.read()["SetAnomalyTask"]
        copied = registry.PATH.read_text().replace(entry.git_blob, registry.git_blob_id(path.read_bytes()))
        (tmp_path / "registry.toml").write_text(copied)
        monkeypatch.setattr(registry, "PATH", tmp_path / "registry.toml")
        return state

    def test_the_registry_knows_its_size(self):
        registered = registry.read()["SetAnomalyTask"].hyper_parameters
        assert registered.items() <= self.HYPER_PARAMETERS.items()

    def test_its_names_and_shapes_load_and_its_numbers_are_taken_over(self, published):
        model = checkpoints.load(AnomalyPredictor, "SetAnomalyTask")
        assert model.state_dict().keys() == published.keys()
        assert all(torch.equal(model.state_dict()[name], tensor) for name, tensor in published.items())
        assert model(torch.zeros(2, 10, 512), add_positional_encoding=False).shape == (2, 10, 1)

    def test_the_full_profile_tests_it_on_resnet34_features_and_on_the_test_images_only(
        self, published, monkeypatch, capsys
    ):
        from feature_fixtures import generated_images

        image_set = generated_images(240)
        monkeypatch.setitem(images._SOURCES, "cifar100", lambda: image_set)
        features = torch.randn(240, 512, generator=torch.Generator().manual_seed(0))
        monkeypatch.setattr("course_utils.anomaly.cached_features", lambda *arguments: features)
        model, metrics = train_anomaly(images="cifar100", backbone="resnet34", profile="full")
        assert "Loaded the published checkpoint 'SetAnomalyTask'" in capsys.readouterr().out
        assert torch.equal(model.state_dict()["output_net.4.weight"], published["output_net.4.weight"])
        assert metrics.keys() == {"test_acc"}
