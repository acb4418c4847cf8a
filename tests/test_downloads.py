"""Servers that fail: each fault ends in the right file or in one sentence, and leaves nothing behind."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import fault_server
import pytest
from checkpoint_fixtures import FILE, IMPATIENT, NAME
from fault_server import CONTENT, FaultServer, fine, redirect_to, status

from course_utils import downloads
from course_utils.checkpoint_files import CheckpointMissingError, fetch


@dataclass
class Fault:
    """How a server answers, and what a person is told.

    Attributes:
        answers: of the server, in turn; the last one for ever.
        says: part of the message.
        requests: how often the server may be asked.
        hangs: it answers too late, so that a test had better wait little.
    """

    answers: list = field(default_factory=list)
    says: str = ""
    requests: int = 1
    hangs: bool = False


FATAL = {
    "truncated body": Fault([fault_server.truncated], "broke off after", 3),
    "truncated body without a length": Fault([fault_server.truncated_without_length], "sent only 20,000 of 51,200"),
    "wrong hash": Fault([fault_server.other_bytes], "the hash differs"),
    "HTML page with status 200": Fault([fault_server.web_page], "a web page, not the file"),
    "long HTML page": Fault([fault_server.long_web_page], "a web page, not the file"),
    "LFS pointer": Fault([fault_server.lfs_pointer], "a Git LFS pointer"),
    "empty body": Fault([fault_server.nothing], "sent nothing"),
    "endless body": Fault([fault_server.endless], "sent more than the file's 51,200 bytes"),
    "broken compression": Fault([fault_server.compressed_garbage], "ContentDecodingError"),
    "403": Fault([status(403)], "answered 403 (Forbidden)"),
    "404": Fault([status(404)], "answered 404 (Not Found)"),
    "429": Fault([status(429)], "answered 429 (Too Many Requests)"),
    "500 for ever": Fault([status(500)], "answered 500 (Internal Server Error) (attempts: 3)", 3),
    "503, come back in an hour": Fault([status(503, Retry_After="3600")], "answered 503", 1),
    "hanging past the time-out": Fault([fault_server.hangs], "no answer in time", 3, hangs=True),
    "hanging in the body": Fault([fault_server.hangs_in_the_body], "broke off after", 3, hangs=True),
    "dripping": Fault([fault_server.drips], "too slow", hangs=True),
    "dripping in the headers": Fault([fault_server.drips_in_the_headers], "too slow", hangs=True),
    "not HTTP": Fault([fault_server.no_http], "no connection", 3),
    "hanging up": Fault([fault_server.hangs_up], "no connection", 3),
    "redirect in a circle": Fault([redirect_to(f"/{FILE}")], "TooManyRedirects", 31),
}

PASSING = {
    "500, then fine": Fault([status(500), fine], requests=2),
    "503 with a pause, then fine": Fault([status(503, Retry_After="0"), fine], requests=2),
    "truncated, then fine": Fault([fault_server.truncated, fine], requests=2),
    "hanging, then fine": Fault([fault_server.hangs, fine], requests=2, hangs=True),
    "hanging up, then fine": Fault([fault_server.hangs_up, fine], requests=2),
    "redirect": Fault([redirect_to(f"/elsewhere/{FILE}"), fine], requests=2),
}


@pytest.mark.parametrize("fault", [pytest.param(fault, marks=pytest.mark.fault(n), id=n) for n, fault in FATAL.items()])
def test_a_fault_that_lasts_is_one_sentence_and_leaves_nothing(world, fault):
    world.server.answers = list(fault.answers)
    with patience_for(fault), pytest.raises(CheckpointMissingError) as failure:
        fetch(NAME)
    assert_names_file_and_remedy(failure.value, world)
    assert fault.says in str(failure.value)
    assert len(world.server.requests) == fault.requests
    assert world.files() == [] and world.leftovers() == []

    world.server.answers = [fine]  # the next run, without anybody cleaning up
    assert fetch(NAME).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=pytest.mark.fault(name), id=name) for name, fault in PASSING.items()]
)
def test_a_fault_that_passes_is_sat_out(world, fault):
    world.server.answers = list(fault.answers)
    with patience_for(fault):
        assert fetch(NAME).read_bytes() == CONTENT
    assert len(world.server.requests) == fault.requests
    assert world.files() == [FILE] and world.leftovers() == []


@pytest.mark.fault("refused")
def test_connection_refused(world):
    world.register([f"http://127.0.0.1:{closed_port()}/{FILE}"])
    with pytest.raises(CheckpointMissingError, match=r"no connection \(\[Errno \d+\] Connection refused\)") as failure:
        fetch(NAME)
    assert_names_file_and_remedy(failure.value, world)
    assert world.files() == [] and world.leftovers() == []


@pytest.mark.fault("no such host")
def test_host_without_an_address(world):
    world.register([f"http://no-such-host.invalid/{FILE}"])
    with pytest.raises(CheckpointMissingError, match="no connection") as failure:
        fetch(NAME)
    assert_names_file_and_remedy(failure.value, world)


@pytest.mark.parametrize("address", ["ftp:///", "http://", "http://[", "http://127.0.0.1:99999/x"])
@pytest.mark.fault("address that is none")
def test_malformed_address_goes_to_the_next_mirror(world, address):
    world.register([address, f"{world.server.url}/{FILE}"])
    assert fetch(NAME).read_bytes() == CONTENT


@pytest.mark.fault("first mirror down")
def test_first_mirror_down(world):
    world.register([f"http://127.0.0.1:{closed_port()}/{FILE}", f"{world.server.url}/{FILE}"])
    assert fetch(NAME).read_bytes() == CONTENT
    assert len(world.server.requests) == 1


@pytest.mark.parametrize("answer", [status(404), fault_server.web_page, fault_server.hangs, fault_server.drips])
@pytest.mark.fault("first mirror wrong")
def test_second_mirror_is_asked_after_any_fault_of_the_first(world, answer):
    with FaultServer() as first:
        first.answers = [answer]
        world.register([f"{first.url}/{FILE}", f"{world.server.url}/{FILE}"])
        with patience_for(Fault(hangs=answer in (fault_server.hangs, fault_server.drips))):
            assert fetch(NAME).read_bytes() == CONTENT
    assert len(world.server.requests) == 1


@pytest.mark.fault("all mirrors wrong")
def test_each_mirror_is_named_with_its_own_failure(world):
    with FaultServer() as first:
        first.answers = [status(404)]
        world.server.answers = [fault_server.web_page]
        world.register([f"{first.url}/{FILE}", f"{world.server.url}/{FILE}"])
        with pytest.raises(CheckpointMissingError) as failure:
            fetch(NAME)
        assert f"{first.url}/{FILE}: answered 404" in str(failure.value)
    assert f"{world.server.url}/{FILE}: sent a web page" in str(failure.value)


def test_a_pause_that_the_server_asks_for_is_kept(world, monkeypatch):
    pauses = []
    monkeypatch.setattr(downloads, "PATIENCE", downloads.Patience(pause=0.25, longest_pause=2.0))
    monkeypatch.setattr("course_utils.downloads.time.sleep", pauses.append)
    world.server.answers = [status(503, Retry_After="1"), status(500), fine]
    assert fetch(NAME).read_bytes() == CONTENT
    assert pauses == [1.0, 0.5]  # as asked; then twice the first pause


def test_retry_after_is_a_number_or_a_date():
    tomorrow = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    assert downloads._retry_after("7") == 7.0
    assert 80_000 < downloads._retry_after(tomorrow) <= 86_400
    assert downloads._retry_after("Sat, 01 Jan 2000 00:00:00 GMT") == 0.0


def test_retry_after_of_no_meaning_asks_for_nothing():
    assert downloads._retry_after("soon") is None and downloads._retry_after("") is None


def test_a_proxy_of_the_environment_is_used(world, monkeypatch):
    world.register([f"http://files.invalid/{FILE}"])
    monkeypatch.setenv("http_proxy", world.server.url)
    monkeypatch.setenv("no_proxy", "")
    assert fetch(NAME).read_bytes() == CONTENT
    assert world.server.requests == [f"http://files.invalid/{FILE}"]


@pytest.mark.fault("proxy down")
def test_a_proxy_that_is_down_is_said(world, monkeypatch):
    world.register([f"http://files.invalid/{FILE}"])
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(CheckpointMissingError, match="no connection") as failure:
        fetch(NAME)
    assert_names_file_and_remedy(failure.value, world)


@contextmanager
def patience_for(fault: Fault) -> Iterator[None]:
    """Short time-outs for a server that hangs."""
    with pytest.MonkeyPatch.context() as patch:
        if fault.hangs:
            patch.setattr(downloads, "PATIENCE", downloads.Patience(**IMPATIENT))
        yield


def assert_names_file_and_remedy(error: CheckpointMissingError, world) -> None:
    message = str(error)
    assert FILE in message and "by hand" in message and "http" in message
    assert str(world.folder) in message and "checkpoint='none'" in message
    assert "\n" not in message
    assert error.reason == "could not be fetched"  # the same on every machine


def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
