"""Files in the checkpoint folder: verified or set aside, fetched once, whatever happens to a process or a disk."""

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import fault_server
import pytest
from checkpoint_fixtures import FILE, NAME
from fault_server import CONTENT, fine, status

from course_utils import registry
from course_utils.checkpoint_files import CheckpointMissingError, fetch, offline, state

DAMAGED = CONTENT[:1_000]
ASIDE = f"tiny.unrecognised-{hashlib.sha256(DAMAGED).hexdigest()[:12]}.ckpt"


def test_a_verified_file_is_used_without_asking_the_network(world):
    world.path.write_bytes(CONTENT)
    assert fetch(NAME) == world.path
    assert world.server.requests == []
    assert world.everything() == [FILE]  # no lock either


def test_the_folder_of_path_checkpoint_is_made(world, monkeypatch):
    monkeypatch.setenv("PATH_CHECKPOINT", str(world.root / "not" / "yet"))
    assert fetch(NAME) == world.root / "not" / "yet" / FILE
    assert fetch(NAME).read_bytes() == CONTENT


@pytest.mark.parametrize("damaged", [DAMAGED, b"", CONTENT[::-1]], ids=["cut off", "empty", "of the same size"])
@pytest.mark.fault("damaged file in place")
def test_a_damaged_file_is_set_aside_and_the_right_one_fetched(world, damaged, caplog):
    world.path.write_bytes(damaged)
    assert fetch(NAME).read_bytes() == CONTENT
    aside = f"tiny.unrecognised-{hashlib.sha256(damaged).hexdigest()[:12]}.ckpt"
    assert world.files() == [FILE, aside]
    assert (world.folder / aside).read_bytes() == damaged
    assert FILE in caplog.text and aside in caplog.text


@pytest.mark.parametrize("how", ["switched off", "server down"])
@pytest.mark.fault("damaged file in place, no network")
def test_a_damaged_file_without_network_is_set_aside_and_said(world, how, monkeypatch):
    if how == "switched off":
        monkeypatch.setenv("COURSE_OFFLINE", "1")
    else:
        world.server.answers = [status(404)]
    world.path.write_bytes(DAMAGED)
    with pytest.raises(CheckpointMissingError) as failure:
        fetch(NAME)
    message = str(failure.value)
    assert FILE in message and ASIDE in message and world.server.url in message and "checkpoint='none'" in message
    assert world.files() == [ASIDE]

    monkeypatch.delenv("COURSE_OFFLINE", raising=False)
    world.server.answers = [fine]
    assert fetch(NAME).read_bytes() == CONTENT
    assert world.files() == [FILE, ASIDE]


@pytest.mark.fault("damaged file twice")
def test_setting_aside_the_same_content_twice_keeps_it_once(world):
    for _ in range(2):
        world.path.write_bytes(DAMAGED)
        assert fetch(NAME).read_bytes() == CONTENT
    assert world.files() == [FILE, ASIDE]
    assert (world.folder / ASIDE).read_bytes() == DAMAGED


@pytest.mark.fault("name to set aside to is taken")
def test_setting_aside_overwrites_nothing(world):
    (world.folder / ASIDE).write_bytes(b"somebody's own")
    world.path.write_bytes(DAMAGED)
    assert fetch(NAME).read_bytes() == CONTENT
    assert (world.folder / ASIDE).read_bytes() == b"somebody's own"
    (other,) = [name for name in world.files() if name not in (FILE, ASIDE)]
    assert (world.folder / other).read_bytes() == DAMAGED


@pytest.mark.parametrize("kind", ["folder", "dangling link", "pipe"])
@pytest.mark.fault("no file in place")
def test_what_is_no_file_is_set_aside_too(world, kind):
    if kind == "folder":
        world.path.mkdir()
        (world.path / "mine").write_text("kept")
    elif kind == "pipe":
        os.mkfifo(world.path)
    else:
        world.path.symlink_to(world.root / "gone")
    assert fetch(NAME).read_bytes() == CONTENT
    assert len(world.files()) == 2  # what stood there still does, under another name


def test_a_link_to_the_right_file_is_fine(world):
    (world.root / "elsewhere").write_bytes(CONTENT)
    world.path.symlink_to(world.root / "elsewhere")
    assert fetch(NAME).read_bytes() == CONTENT
    assert world.server.requests == []


def test_offline_error_names_file_addresses_folder_and_parameter(world, monkeypatch):
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    world.register(["http://one.invalid/tiny.ckpt", "http://two.invalid/tiny.ckpt"])
    with pytest.raises(CheckpointMissingError) as failure:
        fetch(NAME)
    message = str(failure.value)
    for part in (FILE, "COURSE_OFFLINE", "http://one.invalid/", "http://two.invalid/", str(world.folder), "'none'"):
        assert part in message
    assert world.server.requests == [] and world.everything() == []


@pytest.mark.parametrize(("value", "switched_off"), [("1", True), ("true", True), ("", False), ("0", False)])
def test_values_of_course_offline(monkeypatch, value, switched_off):
    monkeypatch.setenv("COURSE_OFFLINE", value)
    assert offline() == switched_off


def test_our_own_files_lie_under_the_base_url(world, monkeypatch):
    world.register([FILE])
    with pytest.raises(CheckpointMissingError, match="COURSE_CHECKPOINT_URL"):
        fetch(NAME)
    monkeypatch.setenv("COURSE_CHECKPOINT_URL", f"{world.server.url}/models")
    assert fetch(NAME).read_bytes() == CONTENT
    assert world.server.requests == [f"/models/{FILE}"]


def test_a_base_url_that_is_none_is_refused(world, monkeypatch):
    monkeypatch.setenv("COURSE_CHECKPOINT_URL", "saved_models")
    with pytest.raises(ValueError, match="COURSE_CHECKPOINT_URL"):
        fetch(NAME)


def test_a_name_that_is_not_registered(world):
    with pytest.raises(CheckpointMissingError, match=r"no checkpoint 'tinny' in the registry, which has tiny"):
        fetch("tinny")


def test_a_file_known_by_its_git_blob_id(world):
    blob = subprocess.run(["git", "hash-object", "--stdin"], input=CONTENT, capture_output=True, check=True)
    world.registry.write_text(
        f'[checkpoints.{NAME}]\nfile = "{FILE}"\ntask = "x"\nmodel = "x:x"\n'
        f'urls = ["{world.server.url}/{FILE}"]\ngit_blob = "{blob.stdout.decode().strip()}"\n'
    )
    assert fetch(NAME).read_bytes() == CONTENT
    world.server.answers = [fault_server.other_bytes]
    world.path.write_bytes(DAMAGED)
    with pytest.raises(CheckpointMissingError, match="the hash differs"):
        fetch(NAME)


@pytest.mark.fault("eight processes at once")
def test_eight_processes_at_once_download_once(world):
    world.server.answers = [fault_server.fine_but_slow]
    processes = [world.process(f"print(fetch({NAME!r}))") for _ in range(8)]
    for process in processes:
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert Path(output.strip()) == world.path
    assert world.path.read_bytes() == CONTENT
    assert len(world.server.requests) == 1
    assert world.files() == [FILE] and world.leftovers() == []


@pytest.mark.fault("eight processes at once, damaged file in place")
def test_eight_processes_at_once_set_a_damaged_file_aside_once(world):
    world.path.write_bytes(DAMAGED)
    processes = [world.process(f"fetch({NAME!r})") for _ in range(8)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert world.files() == [FILE, ASIDE]
    assert len(world.server.requests) == 1


@pytest.mark.fault("killed in mid-download")
def test_killed_in_mid_download_then_run_again(world):
    world.server.answers = [fault_server.hangs_in_the_body, fine]
    process = world.process(f"fetch({NAME!r})")
    wait_until(lambda: world.server.requests)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGKILL
    assert world.files() == [] and world.leftovers() == []
    assert fetch(NAME).read_bytes() == CONTENT  # the lock went with the process


@pytest.mark.fault("killed while writing")
def test_killed_while_writing_then_run_again(world):
    process = world.process(f"os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\nfetch({NAME!r})")
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert world.files() == [] and world.leftovers() != []
    assert fetch(NAME).read_bytes() == CONTENT
    assert world.files() == [FILE] and world.leftovers() == []


@pytest.mark.fault("interrupted by the user")
def test_interrupted_then_run_again(world):
    world.server.answers = [fault_server.hangs_in_the_body, fine]
    process = world.process(f"fetch({NAME!r})")
    wait_until(lambda: world.server.requests)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)  # at once, although the server hangs
    assert "KeyboardInterrupt" in errors
    assert world.files() == [] and world.leftovers() == []
    assert fetch(NAME).read_bytes() == CONTENT


@pytest.mark.fault("disk full (limited file size)")
def test_limited_file_size(world):
    process = world.process(
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        f"try:\n    fetch({NAME!r})\nexcept CheckpointMissingError as error:\n    print(error)\n"
    )
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert_says_what_is_wrong_with_the_folder(output, world.folder, "File too large")
    assert world.files() == [] and world.leftovers() == []
    assert fetch(NAME).read_bytes() == CONTENT


@pytest.mark.fault("disk full (tmpfs)")
def test_disk_full(world):
    output = on_a_tmpfs(world, "size=20k")
    assert_says_what_is_wrong_with_the_folder(output, world.folder, "No space left on device")
    assert output.splitlines()[-1] == "files: []"


@pytest.mark.fault("read-only file system")
def test_a_read_only_file_system_without_the_file(world):
    output = on_a_tmpfs(world, "ro")
    assert_says_what_is_wrong_with_the_folder(output, world.folder, "Read-only file system")


@pytest.mark.fault("read-only folder")
def test_a_read_only_folder_that_holds_the_file_is_fine(world, open_folder):
    (open_folder / FILE).write_bytes(CONTENT)
    output, errors = as_nobody(world, open_folder)
    assert output.startswith(str(open_folder / FILE)), errors
    assert world.server.requests == []


@pytest.mark.fault("read-only folder with a damaged file")
def test_a_read_only_folder_with_a_damaged_file_is_one_sentence(world, open_folder):
    (open_folder / FILE).write_bytes(DAMAGED)
    output, _ = as_nobody(world, open_folder)
    assert "is not the registered one" in output
    assert_says_what_is_wrong_with_the_folder(output, open_folder, "Permission denied")
    assert (open_folder / FILE).read_bytes() == DAMAGED


@pytest.mark.fault("read-only folder without the file")
def test_a_read_only_folder_without_the_file_is_one_sentence(world, open_folder):
    output, _ = as_nobody(world, open_folder)
    assert "is not there" in output
    assert_says_what_is_wrong_with_the_folder(output, open_folder, "Permission denied")
    assert list(open_folder.iterdir()) == []


@pytest.mark.fault("unreadable file")
def test_an_unreadable_file_is_one_sentence(world, open_folder):
    (open_folder / FILE).write_bytes(CONTENT)
    (open_folder / FILE).chmod(0)
    output, _ = as_nobody(world, open_folder)
    assert "is not the registered one" in output
    assert_says_what_is_wrong_with_the_folder(output, open_folder, "Permission denied")


@pytest.mark.fault("the folder is a file")
def test_path_checkpoint_that_is_a_file(world, monkeypatch):
    (world.root / "file").write_text("mine")
    monkeypatch.setenv("PATH_CHECKPOINT", str(world.root / "file"))
    with pytest.raises(CheckpointMissingError) as failure:
        fetch(NAME)
    assert_says_what_is_wrong_with_the_folder(str(failure.value), world.root / "file", "")
    assert (world.root / "file").read_text() == "mine"


def test_state_says_and_changes_nothing(world):
    entry = registry.read()[NAME]
    assert state(entry) == "missing"
    world.path.write_bytes(DAMAGED)
    assert state(entry) == "unrecognised"
    assert world.files() == [FILE]
    world.path.write_bytes(CONTENT)
    assert state(entry) == "verified"


@pytest.fixture
def open_folder():
    """A folder that any user can reach, and nobody but its owner can write to."""
    folder = Path(tempfile.mkdtemp())  # not below tmp_path, which is closed to other users
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


FETCH_AND_PRINT = f"""
try:
    print(fetch({NAME!r}))
except CheckpointMissingError as error:
    print(error)
print("files:", [name for name in os.listdir(os.environ["PATH_CHECKPOINT"]) if not name.endswith(".lock")])
"""


def as_nobody(world, folder: Path) -> tuple[str, str]:
    """Output of a process that fetches into a folder without the rights of root, for whom no folder is read-only."""
    code = (
        "import concurrent.futures, email.utils\n"  # what is imported late may lie where nobody may look
        f"registry.Path.read_text = lambda *_, **__: {world.registry.read_text()!r}\n"  # as the registry does
        "if os.geteuid() == 0:\n    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    )
    return world.process(code + FETCH_AND_PRINT, PATH_CHECKPOINT=str(folder)).communicate(timeout=30)


def on_a_tmpfs(world, options: str) -> str:
    """Output of a process that fetches into a small file system, which it alone sees."""
    mount = f'mount -t tmpfs -o {options} tmpfs "$0" && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", mount, str(world.folder)]
    if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("mounting a file system is not permitted here")
    output, errors = world.process(FETCH_AND_PRINT, prefix).communicate(timeout=30)
    assert errors == ""
    return output


def assert_says_what_is_wrong_with_the_folder(message: str, folder: Path, reason: str) -> None:
    assert FILE in message and str(folder) in message and reason in message
    assert "PATH_CHECKPOINT" in message and "checkpoint='none'" in message


def wait_until(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)
