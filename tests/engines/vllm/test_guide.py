"""What `docs/how-to/engines.md` tells a builder to write is understood, word for word."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from typing import Any

import pytest
import yaml

from echo_hf.config.loading import parse_config
from echo_hf.engines.base import Engine
from echo_hf.engines.openai import ModerationEngine, OpenAIEngine
from echo_hf.engines.vllm import VllmEngine
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT

GUIDE = (ROOT / "docs" / "how-to" / "engines.md").read_text("utf-8")
KINDS = {"vllm": VllmEngine, "openai": OpenAIEngine, "moderation": ModerationEngine}


def made(options: dict[str, Any]) -> Engine:
    return KINDS[options["kind"]](**{key: options[key] for key in options if key != "kind"})


EXAMPLES = [yaml.safe_load(block.text) for block in blocks(GUIDE, "yaml")]
CONFIGS = [example for example in EXAMPLES if "engines" in example]
ALONE = [example for example in EXAMPLES if "engines" not in example]
SERVED = (one.text for one in blocks(GUIDE, "bash") if one.text.startswith("vllm "))
COMMANDS = [shlex.split(text.replace("\\\n", " ")) for text in SERVED]


def test_every_example_is_understood() -> None:
    assert (len(CONFIGS), len(ALONE), len(COMMANDS)) == (1, 7, 1)
    for example in CONFIGS:
        for choice in parse_config(example, "guide").engines.values():
            assert made({"kind": choice.kind, **choice.options})
    assert all(map(made, ALONE))


def test_what_is_served_is_what_is_asked_for() -> None:
    given = dict(pairwise(COMMANDS[0]))
    (asked,) = (one for one in ALONE if one["kind"] == "openai" and "batch" not in one)
    assert (given["serve"], given["--revision"]) == (asked["model"], asked["revision"])
    assert asked["base_url"] == f"http://{given['--host']}:{given['--port']}/v1"
    size = yaml.safe_load(given["--mm-processor-kwargs"])["size"]
    assert list(size.values()) == [asked["min_pixels"], asked["max_pixels"]]


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore")
def test_vllm_understands_the_commands() -> None:
    pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    assert {tuple(words[:2]) for words in COMMANDS} == {("vllm", "serve")}
    (many,) = (
        make_arg_parser(FlexibleArgumentParser()).parse_args(words[2:]) for words in COMMANDS
    )
    assert many.data_parallel_size == 8
    assert many.structured_outputs_config.disable_any_whitespace
    assert many.limit_mm_per_prompt["image"]
    ours = {"--dry-run", "--keep-going"}
    for option in {*re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)+", GUIDE)} - ours:
        assert hasattr(many, option[2:].replace("-", "_")), option
