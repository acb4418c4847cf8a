"""The commands `course checkpoints`, and the upkeep behind them."""

import re
import sys
import tomllib

import pytest
from checkpoint_fixtures import FILE, NAME
from click.testing import CliRunner, Result
from fault_server import CONTENT, status

from course_utils import checkpoints, registry, upkeep
from course_utils.cli import main
from course_utils.reverse import ReversePredictor

TINY = {"input_dim": 10, "model_dim": 8, "num_classes": 10, "num_heads": 1, "num_layers": 1, "lr": 1e-3, "warmup": 5}
RECORDED = f"""
[checkpoints.{NAME}.metrics]
test_acc = {{test_acc}}
val_acc = {{val_acc}}
[checkpoints.{NAME}.measured]
on = "random sequences"
with = "course_utils.reverse:measure_reverse"
arguments = {{{{ seed = 42 }}}}
"""
MADE = f"""
# A remark that stays.
[checkpoints.{NAME}.made]
command = "course checkpoints make {NAME}"
function = "course_utils.reverse:train_reverse"
arguments = {{ max_epochs = 1, model_dim = 8 }}
seed = 7
"""


def course(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["checkpoints", *arguments])


@pytest.mark.parametrize(("content", "state"), [(None, "missing"), (CONTENT, "verified"), (b"cut off", "unrecognised")])
def test_the_list_has_name_state_size_and_metrics(world, content, state):
    world.register(more=RECORDED.format(test_acc=0.25, val_acc=0.5))
    if content is not None:
        world.path.write_bytes(content)
    result = course()
    assert result.exit_code == 0
    for part in (NAME, state, "51,200", "test_acc = 0.25", "val_acc = 0.5"):
        assert part in result.output
    assert world.files() == ([] if content is None else [FILE])


def test_the_real_registry_is_listed():
    result = course()
    assert result.exit_code == 0
    for name in ("reverse", "anomaly_digits_pixels", "ReverseTask", "SetAnomalyTask"):
        assert name in result.output


@pytest.mark.parametrize("arguments", [(), (NAME,)])
def test_fetch(world, arguments):
    result = course("fetch", *arguments)
    assert result.exit_code == 0 and str(world.path) in result.output
    assert world.path.read_bytes() == CONTENT


@pytest.mark.fault("404, on the command line")
def test_fetch_that_fails_exits_with_1_and_one_sentence(world):
    world.server.answers = [status(404)]
    result = course("fetch")
    assert result.exit_code == 1
    assert FILE in result.output and "404" in result.output and "by hand" in result.output
    assert "Traceback" not in result.output and world.files() == []


@pytest.mark.parametrize("command", ["fetch", "verify", "make"])
def test_a_name_that_is_not_registered_is_wrong_usage(world, command):
    result = course(command, "tinny")
    assert result.exit_code == 2 and "there is no checkpoint 'tinny'; there are: tiny" in result.output


def test_a_base_url_that_is_none_is_wrong_usage(world, monkeypatch):
    monkeypatch.setenv("COURSE_CHECKPOINT_URL", "saved_models")
    result = course()
    assert result.exit_code == 2 and "COURSE_CHECKPOINT_URL" in result.output


@pytest.mark.parametrize(("content", "code"), [(None, 0), (CONTENT, 0), (b"cut off", 1)])
def test_verify_exits_with_1_for_an_unrecognised_file_and_leaves_it(world, content, code):
    if content is not None:
        world.path.write_bytes(content)
    result = course("verify")
    assert result.exit_code == code
    assert world.server.requests == []
    if code == 1:
        assert FILE in result.output and f"course checkpoints fetch {NAME}" in result.output
        assert world.path.read_bytes() == content


class TestMeasuring:
    @pytest.fixture
    def accuracies(self, world) -> dict[str, float]:
        """Those of an untrained model in the checkpoint folder."""
        model = ReversePredictor(**TINY, max_iters=10)
        checkpoints.save(model, world.path)
        self.register(world, test_acc=0.0, val_acc=0.0)
        return upkeep.measured_metrics(registry.read()[NAME])

    def register(self, world, **metrics) -> None:
        world.register(content=world.path.read_bytes(), more=RECORDED.format(**metrics))

    def test_metrics_within_the_tolerance_pass(self, world, accuracies):
        self.register(world, **{name: value + 0.009 for name, value in accuracies.items()})
        result = course("verify", "--measure")
        assert result.exit_code == 0
        assert f"test_acc = {accuracies['test_acc']:.4f}" in result.output

    def test_a_metric_that_has_moved_exits_with_1(self, world, accuracies):
        self.register(world, test_acc=accuracies["test_acc"], val_acc=accuracies["val_acc"] + 0.02)
        result = course("verify", "--measure")
        assert result.exit_code == 1
        assert re.search(r"tiny: val_acc is 0\.\d+ where the registry has 0\.\d+ \(tolerance 0\.01\)", result.output)
        assert "test_acc is" not in result.output

    def test_without_measure_metrics_are_not_looked_at(self, world, accuracies):
        self.register(world, test_acc=0.99, val_acc=0.99)
        assert course("verify").exit_code == 0

    def test_a_missing_file_is_not_measured_nor_fetched(self, world, accuracies):
        world.path.unlink()
        assert course("verify", "--measure").exit_code == 0
        assert world.server.requests == []

    @pytest.mark.fault("malicious pickle, measured")
    def test_an_unsafe_file_exits_with_1(self, world):
        content = b"\x80\x04cos\nsystem\n."
        world.path.write_bytes(content)
        world.register(content=content, more=RECORDED.format(test_acc=0.5, val_acc=0.5))
        result = course("verify", "--measure")
        assert result.exit_code == 1 and "nothing of it was run" in result.output

    def test_metrics_that_cannot_be_measured_here_are_said(self, world):
        world.register(more=f'[checkpoints.{NAME}.measured]\non = "images, as published"\n')
        world.path.write_bytes(CONTENT)
        result = course("verify", "--measure")
        assert result.exit_code == 0 and "not measured again" in result.output


class TestMaking:
    @pytest.fixture(autouse=True)
    def _logs_elsewhere(self, world, monkeypatch):
        monkeypatch.setattr("course_utils.training.runs_dir", lambda: world.root / "runs")

    def test_it_trains_saves_and_registers(self, world):
        world.register(more=MADE)
        world.path.write_bytes(b"somebody's own")
        result = course("make", NAME)
        assert result.exit_code == 0, result.output
        assert "test_acc = " in result.output

        entry = registry.read()[NAME]
        content = world.path.read_bytes()
        assert entry.recognises(content) and entry.size == len(content)
        assert entry.hyper_parameters["model_dim"] == 8
        assert entry.made["arguments"] == {"max_epochs": 1, "model_dim": 8} and entry.made["seed"] == 7
        assert {"commit", "date", "versions"} <= entry.made.keys()
        assert {"python", "torch", "pytorch-lightning"} <= entry.made["versions"].keys()
        assert entry.metrics.keys() == {"test_acc", "val_acc"}
        assert "# A remark that stays." in world.registry.read_text()
        assert any("unrecognised" in name for name in world.files())  # somebody's own is kept
        assert checkpoints.load(ReversePredictor, NAME).hparams.model_dim == 8
        assert course("verify").exit_code == 0

    def test_making_twice_gives_the_same_file_and_entry(self, world, monkeypatch):
        world.register(more=MADE)
        monkeypatch.setattr(upkeep, "_circumstances", lambda: {"commit": "abc"})  # nobody commits or crosses midnight
        texts = []
        for _ in range(2):
            assert course("make", NAME).exit_code == 0
            texts.append(world.registry.read_text())
        assert texts[0] == texts[1]

    def test_without_the_package_that_writes_toml_nothing_is_trained(self, world, monkeypatch):
        world.register(more=MADE)
        monkeypatch.setitem(sys.modules, "tomlkit", None)
        result = course("make", NAME)
        assert result.exit_code == 2 and "transformer-course[maintain]" in result.output
        assert world.files() == []

    def test_a_published_checkpoint_cannot_be_made(self, world):
        world.register(more=f'[checkpoints.{NAME}.made]\ncommand = "a tutorial"\n')
        result = course("make", NAME)
        assert result.exit_code == 2 and "a tutorial" in result.output


class TestTheRegistryOfTheCourse:
    def test_each_entry_says_what_it_is_and_how_it_was_made(self):
        for entry in registry.read().values():
            assert entry.metrics.keys() >= {"test_acc", "val_acc"}, entry.name
            assert entry.hyper_parameters and entry.measured["on"] and entry.made["command"], entry.name
            assert (entry.sha256 is None) != (entry.git_blob is None), entry.name

    @pytest.mark.parametrize("name", ["reverse", "anomaly_digits_pixels"])
    def test_ours_say_how_to_make_them_again(self, name):
        made = registry.read()[name].made
        assert made["command"] == f"course checkpoints make {name}"
        assert {"function", "arguments", "seed", "commit", "versions", "date"} <= made.keys()

    def test_no_address_of_our_own_files_is_set(self, monkeypatch):
        monkeypatch.delenv("COURSE_CHECKPOINT_URL", raising=False)
        assert tomllib.loads(registry.PATH.read_text())["base_url"] == ""
        assert registry.read()["reverse"].urls == ()
        assert registry.stand_in("reverse") == "ReverseTask"

    def test_the_published_file_is_the_registered_one(self, published_checkpoint):
        assert registry.read()["ReverseTask"].recognises(published_checkpoint.read_bytes())

    @pytest.mark.slow
    def test_the_committed_files_score_as_registered(self):
        result = course("verify", "--measure", "reverse", "anomaly_digits_pixels")
        assert result.exit_code == 0, result.output
        assert result.output.count("verified") == 2
