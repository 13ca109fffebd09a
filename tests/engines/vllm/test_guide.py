"""What `docs/engines.md` tells a builder to write is understood, word for word."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from typing import Any

import pytest
import yaml

from echo_hf.config import parse_config
from echo_hf.engines.base import Engine
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.engines.vllm import VllmEngine
from echo_hf.engines.vllm.options import VllmOptions
from tests.stages_for_tests import ROOT

GUIDE = (ROOT / "docs" / "engines.md").read_text("utf-8")
KINDS = {"vllm": VllmEngine, "openai": OpenAIEngine}


def blocks(language: str) -> list[str]:
    """Every example in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


def made(options: dict[str, Any]) -> Engine:
    """The engine that an example describes."""
    return KINDS[options["kind"]](**{key: options[key] for key in options if key != "kind"})


EXAMPLES = [yaml.safe_load(block) for block in blocks("yaml")]
CONFIGS = [example for example in EXAMPLES if "engines" in example]
ALONE = [example for example in EXAMPLES if "engines" not in example]


def test_there_are_examples() -> None:
    """One GPU and many as whole configs, several GPUs and another family as an engine."""
    assert (len(CONFIGS), len(ALONE), len(blocks("bash"))) == (2, 2, 1)


@pytest.mark.parametrize("example", CONFIGS, ids=lambda example: next(iter(example["engines"])))
def test_whole_configs_are_understood(example: dict[str, Any]) -> None:
    """By the config, and each engine's options by the engine."""
    config = parse_config(example, "guide")
    for choice in config.engines.values():
        assert made({"kind": choice.kind, **choice.options})


@pytest.mark.parametrize("example", ALONE, ids=lambda example: example["model"])
def test_single_engines_are_understood(example: dict[str, Any]) -> None:
    """Every option exists and has a value that it can have."""
    assert made(example)


def test_the_table_of_options_is_whole() -> None:
    """Each option stands in it with the default that the code has, where that is a value."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|([^|]*)\|", GUIDE, re.MULTILINE)
    told = {}
    for names, defaults in rows:
        each = re.findall(r"\w+", names)
        values = defaults.strip().split(", ") if len(each) > 1 else [defaults.strip().strip("`")]
        told |= dict(zip(each, values, strict=True))
    assert list(told) == list(VllmOptions.model_fields)
    for name, field in VllmOptions.model_fields.items():
        if isinstance(field.default, bool | int | float | str) and field.default != "auto":
            assert yaml.safe_load(told[name]) == field.default, name


def test_what_is_served_is_what_is_asked_for() -> None:
    """Model, revision, address and pixel budget of the command and of the config agree."""
    command = shlex.split(blocks("bash")[0].replace("\\\n", " "))
    given = dict(pairwise(command))
    asked = CONFIGS[1]["engines"]["text"]
    assert (given["serve"], given["--revision"]) == (asked["model"], asked["revision"])
    assert asked["base_url"] == f"http://{given['--host']}:{given['--port']}/v1"
    size = yaml.safe_load(given["--mm-processor-kwargs"])["size"]
    assert list(size.values()) == [asked["min_pixels"], asked["max_pixels"]]


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore")
def test_vllm_understands_the_command() -> None:
    """Every option of `vllm serve` in the guide is one of the installed version."""
    pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    words = shlex.split(blocks("bash")[0].replace("\\\n", " "))
    assert words[:2] == ["vllm", "serve"]
    read = make_arg_parser(FlexibleArgumentParser()).parse_args(words[2:])
    assert read.data_parallel_size == 8
    assert read.structured_outputs_config.disable_any_whitespace
    for option in re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)+", GUIDE):
        assert hasattr(read, option[2:].replace("-", "_")), option
