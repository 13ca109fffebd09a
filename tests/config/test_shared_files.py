"""Systems and judges in configs: their options, and the files that they may have."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from echo_hf.config.checks import first_error
from echo_hf.config.evaluation import JudgeConfig, read_judge, shipped_judges
from echo_hf.config.loading import load_config
from echo_hf.config.rubrics import RUBRICS
from echo_hf.config.systems import (
    SystemConfig,
    find_config,
    list_shipped_systems,
    read_system,
    shipped_configs,
)
from echo_hf.engines.base import engine_names, make_engine
from echo_hf.errors import ConfigError
from echo_hf.judging.rate import adapt_rubric, fill_rubric_prompt
from echo_hf.systems.benchmark import load_evaluation
from tests.judging.judges_for_tests import config_of, judge_of

LEAST: dict[str, Any] = {
    "name": "mine",
    "adapter": "command",
    "developer": "Northlight",
    "status": "current",
}
EVALUATION = "name: x\nbenchmark: lab/echo@v1\n"
MINE = "{name: mine, adapter: files, developer: Northlight, status: replay, parameters: "


def system(**values: Any) -> SystemConfig:
    return SystemConfig.model_validate({**LEAST, **values})


def written(folder: Path, **files: str) -> Path:
    """A folder with a config and files of systems."""
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".yaml").write_text(text)
    return folder / "config.yaml"


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as raised:
        load_evaluation(path)
    assert "\n" not in str(raised.value)
    assert "tulip" not in str(raised.value)
    return str(raised.value)


def test_an_image_made_before_costs_nothing() -> None:
    price = {"usd_per_image": 0.04, "as_of": "2026-01-01"}
    assert system(price=price).usd_per_image == 0.04
    assert system(price=price, adapter="files").usd_per_image == 0


NO_SIZE = "expected auto, match_input, or {width: 1024, height: 1024}, with sides from 16 to 8192"
ELSEWHERE = "put the secret into an environment variable"
BAD: list[tuple[dict[str, Any], str]] = [
    *(
        ({"size": size}, f"size is {size!r}: {NO_SIZE}")
        for size in ("big", 1024, {"width": 64, "hieght": 64}, {"width": 15, "height": 64})
    ),
    ({"limits": {"per_minute": float("inf")}}, "limits.per_minute is inf"),
    ({"limits": {"concurency": 2}}, "unknown key in limits 'concurency'; did you mean"),
    ({"price": {"usd_per_image": 1}}, "price.as_of is missing"),
    ({"price": {"usd_per_image": -1, "as_of": "2026-01-01"}}, "price.usd_per_image is -1"),
    ({"name": "../mine"}, "name is '../mine': expected at most 96"),
    ({"stands_for": "GPT-4o"}, "stands_for is 'GPT-4o' and status is 'current'"),
    ({"status": "substitute", "note": "n"}, "expected stands_for and a note"),
    ({"status": "substitute", "stands_for": "x"}, "expected stands_for and a note"),
    (
        {"name": "gemini-2-0.flash", "status": "substitute", "note": "n"}
        | {"stands_for": "Gemini 2.0 Flash"},
        "expected a substitute to be named after the model that answers",
    ),
    *(
        ({"parameters": parameters}, ELSEWHERE)
        for parameters in (
            {"api_key": "tulip-1234"},
            {"client": {"headers": {"Authorization": "tulip-1234"}}},
            {"inner": [{"hf_token": "tulip-1234"}]},
            {"base_url": "https://mira:tulip-1234@example.org/v1"},
            {"base_urls": ["https://mira:tulip-1234@example.org/v1"]},
        )
    ),
]


@pytest.mark.parametrize(("values", "words"), BAD, ids=str)
def test_a_mistake_is_one_line(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as raised:
        system(**values)
    said = first_error(raised.value, "mine.yaml", SystemConfig)
    assert said.startswith("mine.yaml: ")
    assert words in said
    assert "\n" not in said
    assert "tulip" not in said


def test_a_place_of_a_secret_is_none() -> None:
    parameters = {"api_key_env": "LUMEN_API_KEY", "max_tokens": 512, "key_frames": 3}
    assert system(parameters=parameters).parameters == parameters


def test_a_name_is_looked_for_beside_the_config(tmp_path: Path) -> None:
    """And its folder beside the file that names it; those of echo-hf come after one's own."""
    inline = "{name: b, adapter: files, developer: N, status: replay, parameters: {folder: f}}"
    config = written(
        tmp_path,
        systems__mine=MINE + "{folder: drawn, steps: 2}}",
        fixed=MINE.replace("mine", "fixed") + "{folder: /data/drawn}}",
        config=f"{EVALUATION}systems:\n  - systems/mine.yaml\n  - fixed.yaml\n  - {inline}\n",
    )
    first, fixed, last = load_evaluation(config).systems
    assert first.parameters == {"folder": str(tmp_path / "systems" / "drawn"), "steps": 2}
    assert fixed.parameters == {"folder": "/data/drawn"}
    assert last.parameters == {"folder": str(tmp_path / "f")}
    written(tmp_path, config=f"{EVALUATION}systems: [quickstart.yaml]\n")
    assert refused(config).startswith(str(shipped_configs() / "quickstart.yaml"))
    written(tmp_path, quickstart=MINE + "{}}")
    assert load_evaluation(config).systems[0].name == "mine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: mine\n", "adapter is missing"),
        ("[1, 2]", "expected a mapping"),
        ("a: b: c", "not valid YAML"),
        ("", "expected a mapping"),
        (MINE + "{api_key: tulip-1234}}", ELSEWHERE),
    ],
    ids=lambda one: one[:20],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    said = refused(written(tmp_path, mine=text, config=f"{EVALUATION}systems: [mine.yaml]\n"))
    assert said.startswith(f"{tmp_path / 'mine.yaml'}: ")
    assert words in said


@pytest.mark.parametrize(
    ("kind", "example"), [("system", "flux_kontext"), ("judge", "qwen2_5_vl_32b")]
)
def test_a_missing_file_is_named(tmp_path: Path, kind: str, example: str) -> None:
    said = refused(written(tmp_path, config=f"{EVALUATION}{kind}s: [none.yaml]\n"))
    assert said.startswith(f"no {kind} '{tmp_path / 'none.yaml'}': expected a YAML file")
    assert example in said


def test_every_substitute_is_named_after_what_answers() -> None:
    """Each number of its model stands in its name, none of what it stands in for alone does."""
    every = [*map(read_system, list_shipped_systems()), *map(read_judge, shipped_judges())]
    substitutes = [one for one in every if one.status == "substitute"]
    assert len(substitutes) == 6
    for one in substitutes:
        numbers = re.findall(r"[0-9]+", one.name)
        assert numbers
        assert set(numbers) <= set(re.findall(r"[0-9]+", str(one.answered_by.model)))


def test_who_answered_is_told_without_the_folders_of_this_machine() -> None:
    """It is published with every figure."""
    for model in ("/data/mira/lumen", "/data/mira/lumen/", "~/models/lumen"):
        system = SystemConfig.model_validate({**LEAST, "model": model})
        engine = {"kind": "vllm", "model": model}
        judge = JudgeConfig.model_validate(judge_of(engine=engine))
        assert (system.answered_by.model, judge.answered_by.model) == ("lumen", "lumen")
    named = SystemConfig.model_validate({**LEAST, "model": "northlight/lumen"})
    assert named.answered_by.model == "northlight/lumen"


def test_those_that_echo_hf_brings_can_be_read() -> None:
    for path in list_shipped_systems():
        assert read_system(path).name.replace("-", "_").replace(".", "_") == path.stem


def test_a_brought_config_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path alone, and after a file of one's own at that path."""
    monkeypatch.chdir(tmp_path)
    assert load_config("eval_configs/paper.yaml").name == "gpt-4o-2025-03"
    assert load_evaluation("eval_configs/quickstart.yaml").name == "quickstart"
    no_other = ("quickstart.yaml", "eval_configs", "eval_configs/absent.yaml")
    for named in (*no_other, "eval_configs/../eval_configs/quickstart.yaml"):
        assert find_config(Path(named)) == Path(named)
    written(tmp_path, eval_configs__quickstart="[]")
    with pytest.raises(ConfigError, match="expected a mapping"):
        load_config("eval_configs/quickstart.yaml")


def test_the_papers_judges_and_four_of_today_are_brought_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has an engine that takes its options."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    judges = {file.stem: read_judge(file) for file in shipped_judges()}
    counts = Counter(one.status for one in judges.values())
    assert counts == {"as_published": 1, "substitute": 2, "current": 4}
    for name, one in judges.items():
        assert one.name == name
        assert (one.status == "current") == (one.stands_for is None)
        assert one.note
        assert one.engine.kind in engine_names()
        assert make_engine(one.engine.kind, **one.engine.options).stored


def test_files_of_judges_are_found_beside_the_config_and_among_ours(tmp_path: Path) -> None:
    own = tmp_path / "mine" / "strict.yaml"
    own.parent.mkdir()
    own.write_text(yaml.safe_dump(judge_of("strict", prompt_file="strict.md")), "utf-8")
    (own.parent / "strict.md").write_text("Be strict.\n\n$form", "utf-8")
    path = config_of(tmp_path)
    config = yaml.safe_load(path.read_text("utf-8"))
    names = [
        "mine/strict.yaml",
        "judges/gpt_4o_2024_11_20.yaml",
        judge_of("inline", prompt_file="own.md"),
    ]
    path.write_text(yaml.safe_dump({**config, "judges": names}), "utf-8")

    strict, ours, inline = load_evaluation(path).judges
    assert (strict.name, ours.name) == ("strict", "gpt_4o_2024_11_20")
    assert (strict.prompt_file, inline.prompt_file) == (
        own.parent / "strict.md",
        tmp_path / "own.md",
    )
    assert _instructions(strict).startswith("Be strict.\n\nWrite your assessment")
    assert "Be strict" not in _instructions(strict, "text_rendering")


def _instructions(judge: JudgeConfig, name: str = "overall") -> str:
    return fill_rubric_prompt(judge, adapt_rubric(judge, RUBRICS.find(name))).text


def test_the_scale_stands_in_the_instructions() -> None:
    whole = _instructions(JudgeConfig(**judge_of(scale=[0, 100])))
    assert "a whole number from 0 (worst) to 100 (best)" in whole
    assert 'for example "Rating: [[50]]"' in whole
    finer = _instructions(JudgeConfig(**judge_of(decimals=True, mode="structured")))
    assert "decimals allowed, from 1 (worst) to 10 (best)" in finer
    assert "[[" not in finer


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"scale": [10, 1]}, "scale is [10, 1]: expected the lowest first"),
        ({"scale": [1, 9.5]}, "expected whole numbers, or decimals: true"),
        ({"engine": {"kind": "openai", "api_key": "tulip-1"}}, ELSEWHERE),
        ({"status": "substitute"}, "stands_for and a note"),
        ({"scael": [1, 10]}, "'scael'; did you mean 'scale'"),
        ({"name": "other"}, "'other' is taken"),
    ],
    ids=str,
)
def test_a_mistake_in_a_judge_is_one_line(
    tmp_path: Path, wrong: dict[str, Any], words: str
) -> None:
    assert words in refused(config_of(tmp_path, [{**judge_of(), **wrong}, judge_of("other")]))


@pytest.mark.parametrize(
    ("shares", "more", "words"),
    [
        ((0.2, 0.2), {}, "judge 'a' has share 0.2, and nobody rates all samples by 'overall'"),
        ((0.2, 1), {"protocol": "published"}, "protocol 'published' does not know"),
    ],
)
def test_somebody_rates_all_samples(
    tmp_path: Path, shares: tuple[float, ...], more: dict[str, Any], words: str
) -> None:
    judges = [judge_of(name, share=share) for name, share in zip("ab", shares, strict=True)]
    assert words in refused(config_of(tmp_path, judges, **more))
    by_text = judge_of("c", rubrics=["overall", "text_rendering"], share=0.5)
    said = refused(config_of(tmp_path, [judge_of("b"), by_text]))
    assert "nobody rates all samples by 'text_rendering': expected a judge with this" in said


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", None], ids=["empty", "bytes", "missing"])
def test_instructions_that_cannot_be_read_are_refused(
    tmp_path: Path, content: bytes | None
) -> None:
    path = config_of(tmp_path, [judge_of(prompt_file="own.md")])
    if content is not None:
        (tmp_path / "own.md").write_bytes(content)
    (judge,) = load_evaluation(path).judges
    with pytest.raises(ConfigError, match=r"judge 'mira': prompt_file .*own.md"):
        _instructions(judge)
