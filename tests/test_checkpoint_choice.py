"""What a notebook does with its parameter `checkpoint`: present, missing with a server, missing without network."""

import shutil

import pytest
from checkpoint_fixtures import FILE, NAME
from fault_server import send, status

from course_utils import checkpoints, registry, training
from course_utils.reverse import ReversePredictor
from course_utils.training import Loaders, Recipe, load_or_fit

MODEL = {"input_dim": 10, "model_dim": 8, "num_classes": 10, "num_heads": 1, "num_layers": 1, "lr": 1e-3, "warmup": 5}
PUBLISHED = """
[checkpoints.published]
file = "published.ckpt"
size = {size}
sha256 = "{sha256}"
urls = ["{url}/published.ckpt"]
task = "reverse"
model = "course_utils.reverse:ReversePredictor"
stands_in_for = "tiny"
"""


@pytest.fixture
def saved(world, monkeypatch) -> bytes:
    """A registered checkpoint of ours that is nowhere, and training that takes no time and is counted."""
    model = ReversePredictor(**MODEL, max_iters=50)
    checkpoints.save(model, world.root / "made.ckpt")
    content = (world.root / "made.ckpt").read_bytes()
    world.register([], content=content)
    world.server.answers = [lambda handler: send(handler, content)]
    monkeypatch.setattr(training, "fit", lambda model, *_, **__: "trained")
    return content


def chosen(checkpoint: str = "auto", **settings):
    recipe = Recipe(model={**MODEL, **settings.pop("model", {})}, max_epochs=1, batch_size=1, gradient_clip_val=1.0)
    return load_or_fit(ReversePredictor, recipe, Loaders([0], [0], [0]), name=NAME, checkpoint=checkpoint, **settings)


@pytest.mark.parametrize("checkpoint", ["auto", "required"])
def test_present(world, saved, checkpoint, capsys):
    world.path.write_bytes(saved)
    assert isinstance(chosen(checkpoint), ReversePredictor)
    assert capsys.readouterr().out == "Loaded the checkpoint 'tiny': nothing was trained.\n"


@pytest.mark.parametrize("checkpoint", ["auto", "required"])
def test_missing_with_a_server(world, saved, checkpoint, monkeypatch, capsys):
    world.register([FILE], content=saved)
    monkeypatch.setenv("COURSE_CHECKPOINT_URL", world.server.url)
    assert isinstance(chosen(checkpoint), ReversePredictor)
    assert capsys.readouterr().out == "Loaded the checkpoint 'tiny': nothing was trained.\n"
    assert world.path.read_bytes() == saved


@pytest.mark.parametrize("how", ["COURSE_OFFLINE", "no server"])
@pytest.mark.fault("missing without network")
def test_missing_without_network_trains_and_says_so_in_the_same_words(world, saved, how, monkeypatch, capsys):
    world.register(content=saved)
    world.server.answers = [status(404)]
    if how == "COURSE_OFFLINE":
        monkeypatch.setenv("COURSE_OFFLINE", "1")
    assert chosen("auto") == "trained"
    assert capsys.readouterr().out == "Training, because the checkpoint 'tiny' could not be fetched.\n"


@pytest.mark.fault("missing without network, required")
def test_missing_without_network_and_required_is_an_error(world, saved, monkeypatch):
    world.register(content=saved)
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    with pytest.raises(checkpoints.CheckpointMissingError) as failure:
        chosen("required")
    for part in (FILE, world.server.url, str(world.folder), "checkpoint='none'"):
        assert part in str(failure.value)


@pytest.mark.parametrize(
    "settings", [{"checkpoint": "none"}, {"max_epochs": 1}, {"checkpoint": "required", "max_epochs": 1}]
)
def test_what_trains_in_any_case(world, saved, settings, capsys):
    world.path.write_bytes(saved)
    assert chosen(**settings) == "trained"
    assert capsys.readouterr().out == ""


def test_the_published_one_replaces_ours_while_that_has_no_address(world, saved, capsys):
    register_published(world, saved)
    assert isinstance(chosen(), ReversePredictor)
    assert capsys.readouterr().out == "Loaded the published checkpoint 'published': nothing was trained.\n"
    assert world.files() == ["published.ckpt"]


def test_the_published_one_replaces_nothing_that_is_required(world, saved):
    register_published(world, saved)
    with pytest.raises(checkpoints.CheckpointMissingError, match=r"tiny\.ckpt"):
        chosen("required")
    assert world.server.requests == []


def test_the_published_one_replaces_nothing_of_other_shapes(world, saved, capsys):
    register_published(world, saved)
    assert chosen(model={"model_dim": 16}) == "trained"
    assert capsys.readouterr().out == (
        "Training, because the checkpoint 'tiny' is not here and "
        "the published checkpoint 'published' has model_dim=8 where 16 is asked for.\n"
    )


def test_the_published_one_is_not_asked_for_where_ours_has_an_address(world, saved, monkeypatch):
    register_published(world, saved, urls=[FILE])
    monkeypatch.setenv("COURSE_CHECKPOINT_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    assert registry.stand_in(NAME) is None
    assert chosen() == "trained"


def test_the_published_one_is_not_asked_for_where_ours_is_there(world, saved):
    register_published(world, saved)
    world.path.write_bytes(saved)
    assert chosen(model={"model_dim": 16}) == "trained"  # of ours, the shapes do not fit
    assert world.server.requests == []


@pytest.mark.fault("damaged file in place, then training")
def test_a_damaged_file_of_ours_is_set_aside_and_training_starts(world, saved, capsys):
    world.path.write_bytes(saved[:1_000])
    assert chosen() == "trained"
    assert len(world.files()) == 1 and world.files()[0].startswith("tiny.unrecognised-")
    assert str(world.root) not in capsys.readouterr().out  # the same line on every machine


@pytest.mark.fault("malicious pickle, auto")
def test_an_unsafe_file_is_an_error_in_auto_too(world, saved):
    world.register(content=b"\x80\x04cos\nsystem\n.")
    world.path.write_bytes(b"\x80\x04cos\nsystem\n.")
    with pytest.raises(checkpoints.CheckpointUnsafeError):
        chosen()


def test_the_published_checkpoint_of_the_real_registry_replaces_reverse(no_checkpoints, published_checkpoint, capsys):
    shutil.copy(published_checkpoint, no_checkpoints)
    from course_utils.reverse import train_reverse

    _, metrics = train_reverse()
    assert metrics == {"test_acc": 1.0, "val_acc": 1.0}
    assert capsys.readouterr().out == "Loaded the published checkpoint 'ReverseTask': nothing was trained.\n"


def register_published(world, content: bytes, urls=()) -> None:
    facts = {"size": len(content), "sha256": registry.sha256(content), "url": world.server.url}
    world.register(list(urls), content=content, more=PUBLISHED.format(**facts))
