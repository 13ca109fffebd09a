"""What `docs/engines.md` tells a builder to write is understood, word for word."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.builder.build import build
from echo_hf.config.loading import parse_config
from echo_hf.engines.base import ENGINES, Completion, Engine, Request, register
from echo_hf.engines.moderation import ModerationEngine, ModerationOptions
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.engines.vllm import VllmEngine
from echo_hf.engines.vllm_model import VllmOptions
from tests.recorded_as_model import RecordedAsModel
from tests.stages_for_tests import ROOT

GUIDE = (ROOT / "docs" / "engines.md").read_text("utf-8")
KINDS = {"vllm": VllmEngine, "openai": OpenAIEngine, "moderation": ModerationEngine}


def blocks(language: str) -> list[str]:
    """Every example in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


def made(options: dict[str, Any]) -> Engine:
    """The engine that an example describes."""
    return KINDS[options["kind"]](**{key: options[key] for key in options if key != "kind"})


EXAMPLES = [yaml.safe_load(block) for block in blocks("yaml")]
CONFIGS = [example for example in EXAMPLES if "engines" in example]
ALONE = [example for example in EXAMPLES if "engines" not in example]
COMMANDS = [shlex.split(block.replace("\\\n", " ")) for block in blocks("bash")]


def test_there_are_examples() -> None:
    """One GPU and many as whole configs; several GPUs, another family, three guards as engines."""
    assert (len(CONFIGS), len(ALONE), len(COMMANDS)) == (2, 5, 2)


@pytest.mark.parametrize("example", CONFIGS, ids=lambda example: next(iter(example["engines"])))
def test_whole_configs_are_understood(example: dict[str, Any]) -> None:
    """By the config, and each engine's options by the engine."""
    config = parse_config(example, "guide")
    for choice in config.engines.values():
        assert made({"kind": choice.kind, **choice.options})


@dataclasses.dataclass
class Loaded(RecordedAsModel):
    """Rules that are loaded, as a model is, by the first request after they are made."""

    loads: list[str] = dataclasses.field(default_factory=list)
    is_loaded: bool = False

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """As the rules."""
        for number, request in enumerate(requests):
            if not self.is_loaded:
                self.loads.append(self.model)
            self.is_loaded = True
            ((_, answer),) = super().stream([request])
            yield number, answer


OLD_NAMES = {"text": {"kind": "vllm", "model": "a"}, "vision": {"model": "a", "kind": "vllm"}}


@pytest.mark.parametrize(
    ("engines", "loads"),
    [
        (CONFIGS[0]["engines"], ["Qwen/Qwen2.5-VL-7B-Instruct", "meta-llama/Llama-Guard-4-12B"]),
        ({**OLD_NAMES, "guard": {"kind": "vllm", "model": "b"}}, ["a", "b"]),
    ],
    ids=["as written", "equal blocks by their old names"],
)
def test_on_one_gpu_a_build_loads_two_models(
    engines: dict[str, Any], loads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader once, for all that it is asked, then the guard."""
    ENGINES.find("vllm")
    loaded: list[str] = []
    register("vllm")(lambda model, **_: Loaded(model, loads=loaded))
    data = {**CONFIGS[0], "posts": [{"source": "quickstart"}], "engines": engines}

    build(parse_config(data, "guide"), runs=tmp_path)

    assert loaded == loads


@pytest.mark.parametrize("example", ALONE, ids=lambda one: f"{one['kind']} {one['model']}")
def test_single_engines_are_understood(example: dict[str, Any]) -> None:
    """Every option exists and has a value that it can have."""
    assert made(example)


def options_told(section: str) -> dict[str, str]:
    """Options and their defaults, as the table of a section says them."""
    (text,) = re.findall(rf"^## {section}\n(.*?)^## ", GUIDE, re.DOTALL | re.MULTILINE)
    told = {}
    for names, defaults in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|([^|]*)\|", text, re.MULTILINE):
        each = re.findall(r"\w+", names)
        values = defaults.strip().split(", ") if "," in defaults else [defaults.strip().strip("`")]
        told |= dict(zip(each, values * (len(each) // len(values)), strict=True))
    return told


def test_the_table_of_options_is_whole() -> None:
    """Each option stands in it with the default that the code has, where that is a value."""
    told = options_told("One GPU")
    assert list(told) == list(VllmOptions.model_fields)
    for name, field in VllmOptions.model_fields.items():
        if isinstance(field.default, bool | int | float | str) and field.default != "auto":
            assert yaml.safe_load(told[name]) == field.default, name


def test_the_table_of_options_of_a_moderation_is_whole() -> None:
    """Likewise."""
    told = options_told("Guards")
    assert list(told) == list(ModerationOptions.model_fields)
    for name, field in ModerationOptions.model_fields.items():
        if isinstance(field.default, int | float | str):
            assert yaml.safe_load(told[name]) == field.default, name


def test_what_is_served_is_what_is_asked_for() -> None:
    """Model, revision, address and pixel budget of the command and of the config agree."""
    given = dict(pairwise(COMMANDS[0]))
    asked = CONFIGS[1]["engines"]["reader"]
    assert (given["serve"], given["--revision"]) == (asked["model"], asked["revision"])
    assert asked["base_url"] == f"http://{given['--host']}:{given['--port']}/v1"
    size = yaml.safe_load(given["--mm-processor-kwargs"])["size"]
    assert list(size.values()) == [asked["min_pixels"], asked["max_pixels"]]


def test_a_guard_that_is_served_is_what_is_asked_for() -> None:
    """Model and address agree, and the room is that of the guard in process."""
    given = dict(pairwise(COMMANDS[1]))
    here, asked, _ = ALONE[2:]
    assert given["serve"] == here["model"] == asked["model"]
    assert asked["base_url"] == f"http://{given['--host']}:{given['--port']}/v1"
    assert yaml.safe_load(given["--max-model-len"]) == here["max_model_len"]
    assert yaml.safe_load(given["--limit-mm-per-prompt"])["image"] == here["limit_images"]


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore")
def test_vllm_understands_the_commands() -> None:
    """Every option of `vllm serve` in the guide is one of the installed version."""
    pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    assert {tuple(words[:2]) for words in COMMANDS} == {("vllm", "serve")}
    many, guard = (
        make_arg_parser(FlexibleArgumentParser()).parse_args(words[2:]) for words in COMMANDS
    )
    assert many.data_parallel_size == 8
    assert many.structured_outputs_config.disable_any_whitespace
    assert guard.limit_mm_per_prompt["image"]
    for option in re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)+", GUIDE):
        assert hasattr(many, option[2:].replace("-", "_")), option
