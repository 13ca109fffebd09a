"""The finished run of `tests/data/finished_run.tar.xz`, which later versions must go on with.

A server on loopback was the platform, the models and an image system. The archive holds the run as
a version left it, and is not made anew when the code changes: that is its use.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from echo_hf.builder.build import build
from tests.engines.openai.loopback_server import Asked, LoopbackServer, completion, fault, running

ARCHIVE = Path(__file__).parent / "data" / "finished_run.tar.xz"
NAME = "harbour"
GONE = 10103  # the number of the post that a refresh found deleted
PHRASE = {"task_phrase": "draw a picture"}


def asks_later(asked: Asked) -> bool:
    """Whether it is a question that nobody asked yet when the run was made."""
    form = asked.body.get("response_format") or {"json_schema": {"name": None}}
    return form["json_schema"]["name"] in ("PhraseAnswer", "AbsentImageAnswer")


@contextmanager
def serving(config: Path) -> Iterator[LoopbackServer]:
    """A server that its config names, and that answers only what was not asked before."""
    with running() as loopback:
        loopback.behave = lambda asked: (
            completion(json.dumps(PHRASE)) if asks_later(asked) else fault(500, "it was asked")
        )
        text = config.read_text("utf-8")
        before = yaml.safe_load(text)["engines"]["reader"]["base_url"]
        config.write_text(text.replace(before, loopback.url), "utf-8")
        yield loopback
    config.write_text(text, "utf-8")


def extracted(folder: Path) -> Path:
    """The run as it was left; returns its config."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    config = folder / "config.yaml"
    # The version that made it took a model whose way to name places is not known at its word.
    read = yaml.safe_load(config.read_text("utf-8"))
    read["engines"]["reader"]["coordinates"] = "rel_1000"
    config.write_text(yaml.safe_dump(read, sort_keys=False, allow_unicode=True), "utf-8")
    return config


def unpacked(folder: Path) -> None:
    """The run, built once more."""
    config = extracted(folder)
    with serving(config):
        build(config, runs=folder / "runs")
