"""Download a file from the first mirror that has it, and hand out its bytes only when they are the right ones.

The bytes are received in memory and verified there: nothing is on disk before it is known to be right, whatever
happens to the process. That suits the files of this course, which have some megabytes at most.
"""

import io
import os
import textwrap
import threading
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import count

import pooch
import requests

from course_utils.download_progress import shown_bytes
from course_utils.registry import Entry


@dataclass(frozen=True)
class Patience:
    """How long a download may take and how often it is tried.

    Attributes:
        attempts: at each mirror.
        pause: seconds before the second attempt; doubled for each further one.
        longest_pause: seconds; a server that asks to wait longer is given up.
        connect: seconds to wait for a connection.
        read: seconds to wait for the next bytes.
        grace: seconds in which a mirror need not have sent anything.
        slowest: bytes a second that it must send on average after that. Without it, a mirror that sends a byte
            now and then would keep us for ever.
    """

    attempts: int = 3
    pause: float = 0.5
    longest_pause: float = 30.0
    connect: float = 5.0
    read: float = 10.0
    grace: float = 20.0
    slowest: float = 2_000.0


PATIENCE = Patience()
_LARGEST = 256 * 2**20  # bytes taken of a file whose size is not known
_SECONDS_BETWEEN_LOOKS = 0.05
_HEADERS = {"User-Agent": "transformer-course", "Accept-Encoding": "identity"}


class DownloadError(Exception):
    """No mirror gave the file; says for each of them why."""


class _TemporaryError(Exception):
    """This attempt failed, and another one may not."""

    def __init__(self, reason: str, wait_seconds: float | None = None):
        super().__init__(reason)
        self.wait_seconds = wait_seconds  # as the server asks


class _FinalError(Exception):
    """This mirror will not give the file."""


def download(entry: Entry, patience: Patience | None = None) -> bytes:
    """The content of a registered file, from the first of its mirrors that has it.

    A network error or a 5xx answer is tried again after a pause. Any other answer (404, or other bytes than the
    registered ones) is not: the next mirror is asked.

    Args:
        entry: what to fetch; its content is verified.
        patience: time-outs and attempts, by default `PATIENCE`.

    Raises:
        DownloadError: if no mirror gave it.
    """
    failures = []
    for url in entry.urls:
        try:
            return _from_mirror(url, entry, patience or PATIENCE)
        except _FinalError as error:
            failures.append(f"{url}: {_one_line(error)}")
    raise DownloadError("; ".join(failures))


def offline() -> bool:
    """Whether COURSE_OFFLINE switches the network off: set, and neither empty nor 0."""
    return os.environ.get("COURSE_OFFLINE", "").strip().lower() not in ("", "0", "false", "no")


def _from_mirror(url: str, entry: Entry, patience: Patience) -> bytes:
    pause = patience.pause
    for attempt in count(1):
        try:
            content = _receive(url, entry, patience)
            if not entry.recognises(content):
                raise _FinalError(_what_came_instead(content, entry))
            return content
        except _TemporaryError as error:
            asked = error.wait_seconds or 0.0
            if attempt >= patience.attempts or asked > patience.longest_pause:
                raise _FinalError(f"{error} (attempts: {attempt})") from error
            time.sleep(max(asked, min(pause, patience.longest_pause)))
            pause *= 2


def _receive(url: str, entry: Entry, patience: Patience) -> bytes:
    """One attempt, in a thread of its own, so that nothing (a name server, say) can block us past the limits."""
    body = _Body(limit=entry.size or _LARGEST)
    answer: Future[None] = Future()
    threading.Thread(target=_run_request, args=(url, body, patience, answer), daemon=True).start()
    started = time.monotonic()
    try:
        with shown_bytes(entry.file, entry.size) as show:
            while not answer.done():
                wait([answer], timeout=_SECONDS_BETWEEN_LOOKS)
                show(body.received)
                _check_pace(body.received, time.monotonic() - started, patience)
        return _content(answer, body)
    finally:
        body.abandoned = True  # a thread that is still reading ends at its next bytes


def _run_request(url: str, body: "_Body", patience: Patience, answer: "Future[None]") -> None:
    try:
        # Proxies and certificates are those that requests finds in the environment.
        get = pooch.HTTPDownloader(timeout=(patience.connect, patience.read), headers=_HEADERS)
        get(url, body, None)
        answer.set_result(None)
    except BaseException as error:  # it is raised again by whoever waits for the answer
        answer.set_exception(error)


class _Body(io.BytesIO):
    """Bytes received so far; refuses more than a limit, and any once nobody waits for them."""

    def __init__(self, limit: int):
        super().__init__()
        self.limit = limit
        self.received = 0
        self.abandoned = False

    def write(self, data: bytes) -> int:
        self.received += len(data)
        if self.abandoned:
            raise _TooLongError
        written = super().write(data)
        if self.received > self.limit:
            raise _TooLongError
        return written


class _TooLongError(Exception):
    """More bytes came than the file has."""


def _check_pace(received: int, seconds: float, patience: Patience) -> None:
    if received < patience.slowest * (seconds - patience.grace):
        raise _FinalError(f"too slow: {received:,} bytes in {seconds:.0f} seconds")


def _content(answer: "Future[None]", body: _Body) -> bytes:
    """What was received, or the failure in words: temporary or final."""
    try:
        answer.result()
    except _TooLongError:
        pass  # these are not the registered bytes; what they are is said where they are verified
    except requests.HTTPError as error:
        raise _http_failure(error.response) from error
    except requests.exceptions.SSLError as error:
        raise _FinalError(f"the connection is not secure ({_root_cause(error)})") from error
    except requests.Timeout as error:
        raise _TemporaryError("no answer in time") from error
    except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
        what = f"broke off after {body.received:,} bytes" if body.received else "no connection"
        raise _TemporaryError(f"{what} ({_root_cause(error)})") from error
    except Exception as error:  # whatever else a server or an address brings about, the next mirror may do
        raise _FinalError(f"{type(error).__name__}: {error}") from error
    return body.getvalue()


def _http_failure(response: requests.Response) -> Exception:
    status = response.status_code
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "unknown"
    reason = f"answered {status} ({phrase})"
    if status < 500:
        return _FinalError(reason)
    return _TemporaryError(reason, _retry_after(response.headers.get("Retry-After", "")))


def _retry_after(header: str) -> float | None:
    """Seconds to wait: the header gives them as a number or as a date."""
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a time zone
        return None


def _what_came_instead(content: bytes, entry: Entry) -> str:
    start = content[:512].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html", b"<?xml", b"<head")):
        return "sent a web page, not the file"
    if start.startswith(b"version https://git-lfs.github.com/spec"):
        return "sent a Git LFS pointer, not the file it stands for"
    if not content:
        return "sent nothing"
    if entry.size is not None and len(content) < entry.size:
        return f"sent only {len(content):,} of {entry.size:,} bytes"
    if entry.size is not None and len(content) > entry.size:
        return f"sent more than the file's {entry.size:,} bytes"
    return "sent another file than the registered one: the hash differs"


def _one_line(error: Exception) -> str:
    """Its message without line breaks, and not at any length: part of it may be what a server sent."""
    return textwrap.shorten(str(error), width=200, placeholder=" …")


def _root_cause(error: BaseException) -> BaseException:
    """The failure at the bottom of those that libraries have wrapped around it."""
    inner = error.__cause__ or error.__context__
    return error if inner is None else _root_cause(inner)
