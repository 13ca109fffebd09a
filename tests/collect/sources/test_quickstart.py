"""The bundled posts, which need no path."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from echo_hf.collect.collect import Collect
from echo_hf.collect.records import read_records
from echo_hf.config.sections import Posts
from echo_hf.errors import ConfigError
from echo_hf.pipeline.stage_runner import run_stage

BUNDLED = files("echo_hf.quickstart").joinpath("posts.jsonl")


def test_the_bundled_posts_are_read_without_a_path(collect: Collect) -> None:
    """All lines of the package's file, each a post, with all images that they name."""
    lines = [json.loads(line) for line in BUNDLED.read_text("utf-8").splitlines()]
    result = run_stage(collect, read_records([Posts(source="quickstart")]))
    named = sum("path" in one for line in lines for one in line.get("pictures", []))
    taken_in = sum(one["sha256"] is not None for post in result.dataset for one in post["pictures"])

    assert len(result.dataset) == len(lines) - sum(result.stats.rejected.values())
    assert len(result.dataset) > 0
    assert taken_in >= named - sum(result.stats.noted.values()) > 0


def test_a_path_of_its_own_is_not_taken_for_them(collect: Collect) -> None:
    """Named twice, the bundled posts are refused like any other file."""
    with pytest.raises(ConfigError, match="named twice"):
        read_records([Posts(source="quickstart"), Posts(source="quickstart")])
