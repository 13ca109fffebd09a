"""Where a pack is: folders, the local cache, and wrong names, which never reach the internet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from echo_hf.errors import ScoreError
from echo_hf.metrics.face_reader import FILES, FacePack, find_pack
from tests.stages_for_tests import ROOT

COMMIT = "0123456789abcdef0123456789abcdef01234567"
# Asks for the pack of the first argument where every connection is an error.
ASK = """
import socket, sys
def refused(*_, **__):
    raise SystemExit("asked the network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
from echo_hf.errors import ScoreError
from echo_hf.metrics.face_reader import find_pack
try:
    print(find_pack(sys.argv[1]))
except ScoreError as error:
    print(error)
"""


def _asked(pack: str, home: Path, **more: str) -> str:
    environment = {**os.environ, "HF_HOME": str(home), **more}
    return subprocess.run(
        [sys.executable, "-c", ASK, pack],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip


def _cached(home: Path, names: tuple[str, ...]) -> Path:
    repository = home / "hub" / "models--mira--faces"
    folder = repository / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    for name in names:
        (folder / name).write_bytes(b"onnx")
    return folder


def test_a_folder_is_known_by_its_name(tmp_path: Path) -> None:
    """Without the path to it, which is nobody's business."""
    (tmp_path / "pack").mkdir()
    for given in (tmp_path / "pack", str(tmp_path / "pack")):
        assert find_pack(given) == FacePack((tmp_path / "pack").resolve(), "pack", None)


def test_a_folder_has_no_revision(tmp_path: Path) -> None:
    """What is meant cannot be guessed."""
    with pytest.raises(ScoreError, match="is a folder, which has no revision 'v1': leave it out"):
        find_pack(tmp_path, "v1")


@pytest.mark.parametrize("pack", ["auraface", "./packs/none", "/nowhere/pack", "a/b/c", "a b/c"])
def test_what_is_neither_folder_nor_name_is_told_without_asking(pack: str, tmp_path: Path) -> None:
    """In one line, and no connection is tried."""
    shown = _asked(pack, tmp_path)
    assert shown.startswith(f"pack {pack!r} is neither a folder nor a name on the Hub: expected")
    assert "\n" not in shown


def test_an_unknown_name_is_told_offline(tmp_path: Path) -> None:
    """Nobody is asked where the Hub is switched off."""
    shown = _asked("mira/none", tmp_path, HF_HUB_OFFLINE="1")
    assert shown.startswith("no pack 'mira/none' at revision 'main': neither a folder, nor in the")
    assert "\n" not in shown


def test_a_pack_in_the_cache_is_known_by_its_commit(tmp_path: Path) -> None:
    """Offline, too."""
    folder = _cached(tmp_path, FILES)
    shown = _asked("mira/faces", tmp_path, HF_HUB_OFFLINE="1")
    assert shown == repr(FacePack(folder, "mira/faces", COMMIT))


def test_a_pack_that_lacks_a_network_is_told(tmp_path: Path) -> None:
    """With the name of what is missing."""
    _cached(tmp_path, FILES[:1])
    shown = _asked("mira/faces", tmp_path, HF_HUB_OFFLINE="1")
    assert shown.startswith(f"pack 'mira/faces' at '{COMMIT}' lacks {FILES[1]}: expected")


class _Models(BaseHTTPRequestHandler):
    """A Hub on loopback with one pack of three networks."""

    names = (*FILES, "genderage.onnx")
    asked: ClassVar[list[str]] = []

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        kind = {"type": "file", "size": 4, "oid": "0" * 40}
        told: object = {"id": "mira/faces", "sha": COMMIT}
        if "/tree/" in self.path:
            told = [{"path": name, **kind} for name in self.names]
        body = json.dumps(told).encode() if self.path.startswith("/api/") else b"onnx"
        if not self.path.startswith(("/api/models/mira/faces/", "/mira/faces/")):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{len(self.path)}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def hub() -> Iterator[str]:
    """Its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Models)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_two_networks_are_downloaded_and_no_other(hub: str, tmp_path: Path) -> None:
    """The commit that they are of is known."""
    code = (
        "from echo_hf.metrics.face_reader import find_pack; print(find_pack('mira/faces', 'main'))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, "HF_HOME": str(tmp_path), "HF_ENDPOINT": hub, "HF_HUB_OFFLINE": "0"},
    ).stdout.strip()  # fmt: skip
    folder = tmp_path / "hub" / "models--mira--faces" / "snapshots" / COMMIT
    assert shown == repr(FacePack(folder, "mira/faces", COMMIT))
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert not [path for path in _Models.asked if "genderage" in path]
