"""A course whose only checkpoint is served on loopback: a registry, a folder and a server of the test's own."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from fault_server import CONTENT, FaultServer

NAME, FILE = "tiny", "tiny.ckpt"
BRISK = {"pause": 0.01, "longest_pause": 0.3}  # with the usual time-outs, which a busy machine needs
IMPATIENT = {**BRISK, "connect": 0.3, "read": 0.3, "grace": 0.6}  # for servers that do not answer anyway


@dataclass
class CheckpointWorld:
    """What a test of checkpoint files needs.

    Attributes:
        root: folder of the test.
        folder: the checkpoint folder.
        registry: path of the registry.
        server: serves the file, or fails to.
    """

    root: Path
    folder: Path
    registry: Path
    server: FaultServer

    @property
    def path(self) -> Path:
        """Where the checkpoint belongs."""
        return self.folder / FILE

    def register(self, urls: Sequence[str] | None = None, content: bytes = CONTENT, more: str = "") -> None:
        """Write a registry with the checkpoint alone, at these addresses (by default one on the server)."""
        urls = [f"{self.server.url}/{FILE}"] if urls is None else list(urls)
        self.registry.write_text(
            f'base_url = ""\n[checkpoints.{NAME}]\nfile = "{FILE}"\nsize = {len(content)}\n'
            f'sha256 = "{hashlib.sha256(content).hexdigest()}"\nurls = {urls!r}\n'
            f'task = "reverse"\nmodel = "course_utils.reverse:ReversePredictor"\n{more}'
        )

    def files(self) -> list[str]:
        """Names of the files in the checkpoint folder that a person sees."""
        return sorted(path.name for path in self.folder.glob("*") if not path.name.startswith("."))

    def everything(self) -> list[str]:
        """Names of all files in the checkpoint folder."""
        return sorted(path.name for path in self.folder.iterdir())

    def leftovers(self) -> list[str]:
        """Names of hidden files other than locks."""
        return [path.name for path in self.folder.glob(".*") if path.suffix != ".lock"]

    def process(self, code: str, prefix: Sequence[str] = (), **environment: str) -> subprocess.Popen:
        """A Python process that has `fetch` and this world's registry, and runs some code; a prefix starts it."""
        prelude = (
            "import os, resource, signal, sys\n"
            "from pathlib import Path\n"
            "import requests\n"
            "from course_utils import downloads, registry\n"
            "from course_utils.checkpoint_files import CheckpointMissingError, fetch\n"
            f"registry.PATH = Path({str(self.registry)!r})\n"
            f"downloads.PATIENCE = downloads.Patience(**{BRISK!r})\n"
        )
        return subprocess.Popen(
            [*prefix, sys.executable, "-c", prelude + code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH_CHECKPOINT": str(self.folder), **environment},
        )


@pytest.fixture
def world(tmp_path, monkeypatch) -> Iterator[CheckpointWorld]:
    """A registered checkpoint on a server that works, an empty folder for it, and little patience."""
    from course_utils import downloads, registry

    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "COURSE_OFFLINE", "COURSE_CHECKPOINT_URL"):
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "saved"
    folder.mkdir()
    monkeypatch.setenv("PATH_CHECKPOINT", str(folder))
    monkeypatch.setattr(registry, "PATH", tmp_path / "registry.toml")
    monkeypatch.setattr(downloads, "PATIENCE", downloads.Patience(**BRISK))
    with FaultServer() as server:
        world = CheckpointWorld(tmp_path, folder, registry.PATH, server)
        world.register()
        yield world
