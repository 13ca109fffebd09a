"""A worker that draws, or does what a prompt such as `crash` says; it needs no package.

The image is 4 x 4, of one color: the first bytes of sha256(prompt, seed, bytes of the inputs).
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

HELLO = {"echo_hf_worker": 1, "name": "misbehaving", "version": "7", "determinism": "all of it"}


def say(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def flat_png(color: bytes) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress((b"\0" + color * 4) * 4))
    return b"\x89PNG\r\n\x1a\n" + header + rows + chunk(b"IEND", b"")


def started_child(number_to: Path) -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    number_to.write_text(str(child.pid))


def misbehave(prompt: str, request: dict[str, object]) -> dict[str, object]:
    word, _, rest = prompt.partition(" ")
    if word == "crash":
        sys.stderr.write(f"out of paint\nkey {os.environ.get('PAINT_KEY')}\n")
        sys.stderr.flush()
        os._exit(3)
    if word == "hang":
        time.sleep(600)
    if word == "child":
        started_child(Path(rest))
        time.sleep(600)
    if word == "orphan":
        started_child(Path(rest))
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "flood":
        for _ in range(40):
            sys.stdout.write("x" * 65_536)
        sys.stdout.flush()
        time.sleep(600)
    if word == "close":
        os.close(1)
        time.sleep(600)
    if word == "chatter":
        sys.stdout.write(
            'loading\n{"level": "info"}\n[1, 2]\n{"id": broken\n' + "y" * 200_000 + "\n"
        )
        sys.stderr.write("z" * 300_000)
    if word == "scribble":
        for path in request["inputs"]:
            Path(path).write_text("scribble")
    if word == "environment":
        return {"details": {"environment": dict(os.environ), "folder": str(Path.cwd())}}
    if word == "echo":
        return {"details": {"request": request}}
    return json.loads(rest) if word == "say" else {}


def main() -> None:
    say({**HELLO, **json.loads(os.environ.get("HELLO_MORE", "{}"))})
    for line in sys.stdin:
        request = json.loads(line)
        more = misbehave(request["prompt"], request)
        drawn_from = [request["prompt"].encode(), str(request["seed"]).encode()]
        drawn_from += [Path(path).read_bytes() for path in request["inputs"]]
        if request["prompt"] != "empty":
            color = hashlib.sha256(b"".join(drawn_from)).digest()[:3]
            image = b"<html>" if request["prompt"] == "text" else flat_png(color)
            Path(request["output"]).write_bytes(image)
        answer = {"id": request["id"], "seed": request["seed"], "text": f"by {os.getpid()}"}
        line = json.dumps({**answer, **more}) + "\n"
        sys.stdout.write(line * (2 if request["prompt"] == "twice" else 1))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
