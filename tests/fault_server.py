"""A real HTTP server on loopback that fails in the ways that servers do."""

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = bytes(range(256)) * 200  # of the registered file, 51,200 bytes

Answer = Callable[[BaseHTTPRequestHandler], None]


class FaultServer(ThreadingHTTPServer):
    """Gives the answers of a list in turn, and the last one for ever.

    Attributes:
        answers: functions that write an answer.
        requests: the paths asked for so far, or full addresses where it is asked as a proxy.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[Answer] = [fine]
        self.requests: list[str] = []
        self.released = threading.Event()  # ends the answers that hang
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next_answer(self, path: str) -> Answer:
        with self._lock:
            self.requests.append(path)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def __enter__(self) -> "FaultServer":
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address) -> None:
        """A client that hangs up is no surprise here."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.next_answer(self.path)(self)
        self.close_connection = True

    def log_message(self, *_) -> None:
        """Say nothing."""


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, length: int | None = None, **headers) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def fine(handler) -> None:
    send(handler, CONTENT)


def fine_but_slow(handler) -> None:
    time.sleep(0.3)
    send(handler, CONTENT)


def truncated(handler) -> None:
    send(handler, CONTENT[:20_000], length=len(CONTENT))


def truncated_without_length(handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(CONTENT[:20_000])


def other_bytes(handler) -> None:
    send(handler, CONTENT[::-1])


def web_page(handler) -> None:
    send(handler, b"<!DOCTYPE html><html><body>Please sign in to this network</body></html>", Content_Type="text/html")


def long_web_page(handler) -> None:
    send(handler, b"<html>" + b"<p>Please sign in</p>" * 10_000)


def lfs_pointer(handler) -> None:
    send(handler, b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 51200\n")


def nothing(handler) -> None:
    send(handler, b"")


def endless(handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.released.is_set():
        handler.wfile.write(bytes(2**16))


def compressed_garbage(handler) -> None:
    send(handler, b"this is not gzip", Content_Encoding="gzip")


def status(code: int, **headers) -> Answer:
    return lambda handler: send(handler, b"<html>sorry</html>", code, **headers)


def redirect_to(address: str) -> Answer:
    return lambda handler: send(handler, b"", 302, Location=address)


def hangs(handler) -> None:
    handler.server.released.wait(20)


def hangs_in_the_body(handler) -> None:
    send(handler, CONTENT[:20_000], length=len(CONTENT))
    handler.server.released.wait(20)


def drips(handler) -> None:
    """A byte now and then: each one comes in time, the file never does."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(CONTENT)))
    handler.end_headers()
    while not handler.server.released.wait(0.05):
        handler.wfile.write(b"\0")


def drips_in_the_headers(handler) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n")
    while not handler.server.released.wait(0.05):
        handler.wfile.write(b"X")


def no_http(handler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")


def hangs_up(handler) -> None:
    """Closes the connection without a word."""
