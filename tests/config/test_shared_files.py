"""Systems and judges in configs: their options, and the files that they may have."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from echo_hf.config.checks import first_error
from echo_hf.config.judges import read_judge, shipped_judges, with_files
from echo_hf.config.loading import load_config
from echo_hf.config.systems import (
    FixedSize,
    SystemConfig,
    config_place,
    read_system,
    shipped_configs,
    shipped_systems,
)
from echo_hf.engines.base import engine_names, make_engine
from echo_hf.errors import ConfigError
from echo_hf.judging.rate import rubric_prompt
from echo_hf.systems.benchmark import load_evaluation
from tests.judging.judges_for_tests import config_of, judge_of
from tests.systems.runs_for_tests import system

LEAST: dict[str, Any] = {
    "name": "mine",
    "adapter": "command",
    "developer": "Northlight",
    "status": "current",
}


def said(**values: Any) -> str:
    with pytest.raises(ValidationError) as raised:
        SystemConfig.model_validate({**LEAST, **values})
    text = first_error(raised.value, "mine.yaml", SystemConfig)
    assert "\n" not in text
    return text


def test_four_keys_are_enough() -> None:
    config = SystemConfig.model_validate(LEAST)
    assert (config.model, config.stands_for, config.note, config.price) == (None,) * 4
    assert (config.parameters, config.size, config.seed) == ({}, "auto", 0)
    limits = config.limits
    assert (limits.concurrency, limits.per_minute) == (None, None)
    assert (limits.attempts, limits.timeout_s) == (5, 600)


def test_a_size_is_chosen_or_given() -> None:
    for size in ("auto", "match_input"):
        assert SystemConfig.model_validate({**LEAST, "size": size}).size == size
    given = SystemConfig.model_validate({**LEAST, "size": {"width": 1024, "height": 768}})
    assert given.size == FixedSize(width=1024, height=768)
    assert SystemConfig.model_validate(given.model_dump(mode="json")) == given


BAD: list[tuple[dict[str, Any], str]] = [
    ({"size": "big"}, "size is 'big': expected auto, match_input, or {width: 1024, height: 1024}"),
    ({"size": 1024}, "size is 1024: expected auto, match_input, or {width: 1024, height: 1024}"),
    ({"size": None}, "size is None: expected auto"),
    ({"size": {"width": 64, "hieght": 64}}, "unknown key in size 'hieght'; did you mean 'height'?"),
    ({"size": {"width": 15, "height": 64}}, "size.width is 15: input should be greater"),
    ({"size": {"width": 64, "height": 8193}}, "size.height is 8193: input should be less"),
    ({"size": {"width": 64.0, "height": 64}}, "size.width is 64.0: input should be a valid int"),
    ({"size": {"width": 64}}, "size.height is missing"),
    ({"seed": -1}, "seed is -1"),
    ({"seed": 2**31}, "seed is 2147483648"),
    ({"limits": {"concurrency": 0}}, "limits.concurrency is 0"),
    ({"limits": {"per_minute": 0}}, "limits.per_minute is 0"),
    ({"limits": {"per_minute": float("inf")}}, "limits.per_minute is inf"),
    ({"limits": {"attempts": 21}}, "limits.attempts is 21"),
    ({"limits": {"timeout_s": float("nan")}}, "limits.timeout_s is nan"),
    ({"limits": {"concurency": 2}}, "unknown key in limits 'concurency'; did you mean"),
    ({"price": {"usd_per_image": 1}}, "price.as_of is missing"),
    ({"price": {"usd_per_image": -1, "as_of": "2026-01-01"}}, "price.usd_per_image is -1"),
    ({"status": "gone"}, "status is 'gone'"),
    ({"name": "../mine"}, "name is '../mine': expected at most 96"),
    ({"name": "a b"}, "name is 'a b'"),
    ({"adaptor": "x"}, "unknown key 'adaptor'; did you mean 'adapter'?"),
    ({"stands_for": "GPT-4o"}, "stands_for is 'GPT-4o' and status is 'current'"),
    ({"status": "substitute", "note": "n"}, "expected stands_for and a note"),
    ({"status": "substitute", "stands_for": "x"}, "expected stands_for and a note"),
]


@pytest.mark.parametrize(("values", "words"), BAD, ids=[words[:30] for _, words in BAD])
def test_a_mistake_is_one_line(values: dict[str, Any], words: str) -> None:
    assert f"mine.yaml: {words}" in said(**values)


SECRETS: list[dict[str, Any]] = [
    {"api_key": "tulip-1234"},
    {"client": {"headers": {"Authorization": "tulip-1234"}}},
    {"inner": [{"hf_token": "tulip-1234"}]},
    {"base_url": "https://mira:tulip-1234@example.org/v1"},
    {"base_urls": ["https://mira:tulip-1234@example.org/v1"]},
]


@pytest.mark.parametrize("parameters", SECRETS, ids=str)
def test_a_secret_is_refused_and_not_repeated(parameters: dict[str, Any]) -> None:
    text = said(parameters=parameters)
    assert "tulip" not in text
    assert text.endswith("put the secret into an environment variable")


def test_a_place_of_a_secret_is_none() -> None:
    parameters = {"api_key_env": "LUMEN_API_KEY", "max_tokens": 512, "key_frames": 3}
    assert SystemConfig.model_validate({**LEAST, "parameters": parameters}).parameters == parameters


@given(st.dates(), st.floats(0, 1e6))
def test_a_config_is_what_its_dump_says(day: datetime.date, price: float) -> None:
    config = SystemConfig.model_validate(
        {**LEAST, "price": {"usd_per_image": price, "as_of": day}, "parameters": {"a": [1]}}
    )
    assert SystemConfig.model_validate(config.model_dump(mode="json")) == config


MINE = "{name: mine, adapter: files, developer: Northlight, status: replay, parameters: "


def test_a_name_is_looked_for_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "mine.yaml").write_text(MINE + "{folder: drawn, steps: 2}}")
    (tmp_path / "config.yaml").write_text(
        "name: x\nbenchmark: lab/echo@v1\nsystems:\n  - systems/mine.yaml\n"
        "  - {name: b, adapter: files, developer: N, status: replay, parameters: {folder: f}}\n"
    )
    first, second = load_evaluation(tmp_path / "config.yaml").systems
    assert first.name == "mine"
    assert first.parameters == {"folder": str(tmp_path / "systems" / "drawn"), "steps": 2}
    assert second.parameters == {"folder": str(tmp_path / "f")}


def test_an_absolute_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(MINE + "{folder: /data/drawn}}")
    assert read_system(tmp_path / "mine.yaml").parameters == {"folder": "/data/drawn"}


def test_what_names_no_file_is_left_to_the_config(tmp_path: Path) -> None:
    for data in (None, [], {}, {"systems": "a.yaml"}, {"systems": None}):
        assert with_files(data, tmp_path) is data
    mixed = {"systems": [3, None, {"name": "a"}, {"parameters": [1]}]}
    assert with_files(mixed, tmp_path) == mixed


BAD_FILES = {
    "name: mine\n": "adapter is missing",
    MINE + "{folder: x}, stauts: replay}": "unknown key 'stauts'; did you mean 'status'?",
    "[1, 2]": "expected a mapping",
    "a: b: c": "not valid YAML",
    "name: a\nname: b\n": "name",
    "": "expected a mapping",
    MINE + "{api_key: tulip-1234}}": "put the secret into an environment variable",
}


@pytest.mark.parametrize("text", BAD_FILES, ids=[text[:20] for text in BAD_FILES])
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "config.yaml").write_text("name: x\nbenchmark: a/b\nsystems: [mine.yaml]\n")
    with pytest.raises(ConfigError) as raised:
        load_evaluation(tmp_path / "config.yaml")
    said = str(raised.value)
    assert said.startswith(str(tmp_path / "mine.yaml"))
    assert BAD_FILES[text] in said
    assert "\n" not in said
    assert "tulip" not in said


def test_ours_are_found_after_those_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: x\nbenchmark: a/b\nsystems: [quickstart.yaml]\n")
    with pytest.raises(ConfigError) as raised:
        load_evaluation(tmp_path / "config.yaml")
    assert str(raised.value).startswith(str(shipped_configs() / "quickstart.yaml"))
    (tmp_path / "quickstart.yaml").write_text(MINE + "{}}")
    assert load_evaluation(tmp_path / "config.yaml").systems[0].name == "mine"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("name: x\nbenchmark: a/b\nsystems: [none.yaml]\n")
    with pytest.raises(ConfigError, match=r"no system '.*none\.yaml'.*eval_configs/systems"):
        load_evaluation(tmp_path / "config.yaml")


def test_those_that_echo_hf_brings_can_be_read() -> None:
    assert (shipped_configs() / "quickstart.yaml").is_file()
    for path in shipped_systems():
        assert read_system(path).name.replace("-", "_").replace(".", "_") == path.stem


def test_a_file_is_what_its_config_dumps(tmp_path: Path) -> None:
    config = system(
        price={"usd_per_image": 0.04, "as_of": "2026-05-01"}, size={"width": 64, "height": 32}
    )
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    assert read_system(tmp_path / "a.yaml") == config


def test_a_brought_config_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config("eval_configs/gpt4o_release.yaml").name == "gpt-4o-2025-03"
    assert load_evaluation("eval_configs/quickstart.yaml").name == "quickstart"


@pytest.mark.parametrize(
    "named",
    [
        "quickstart.yaml",
        "eval_configs/absent.yaml",
        "eval_configs",
        "eval_configs/../eval_configs/quickstart.yaml",
    ],
)
def test_nothing_else_is_looked_for_among_what_is_brought(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert config_place(Path(named)) == Path(named)


def test_a_config_of_ones_own_comes_before_the_brought_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file at the very path that was named is never passed over."""
    monkeypatch.chdir(tmp_path)
    own = Path("eval_configs/quickstart.yaml")
    own.parent.mkdir()
    own.write_text("[]")
    with pytest.raises(ConfigError, match="expected a mapping"):
        load_config(own)


SHIPPED = list(shipped_judges())
STATUS = {
    "gpt_4o": "substitute",
    "gemini_2_0_flash": "substitute",
    "qwen2_5_vl_32b": "as_published",
    "gpt_6_luna": "current",
    "qwen3_vl_32b": "current",
}


def test_the_papers_judges_and_two_of_today_are_brought_along() -> None:
    judges = {file.stem: read_judge(file) for file in SHIPPED}
    assert {name: one.status for name, one in judges.items()} == STATUS
    assert {name: one.name for name, one in judges.items()} == {name: name for name in judges}
    for one in judges.values():
        assert (one.status == "current") == (one.stands_for is None)
        assert one.note


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_every_judge_has_an_engine_that_takes_its_options(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    judge = read_judge(file)
    assert judge.engine.kind in engine_names()
    engine = make_engine(judge.engine.kind, **judge.engine.options)
    assert engine.stored


def test_files_are_found_beside_the_config_and_among_ours(tmp_path: Path) -> None:
    own = tmp_path / "mine" / "strict.yaml"
    own.parent.mkdir()
    own.write_text(yaml.safe_dump(judge_of("strict", prompt_file="strict.md")), "utf-8")
    (own.parent / "strict.md").write_text("Be strict.\n\n$form", "utf-8")
    path = config_of(tmp_path)
    config = yaml.safe_load(path.read_text("utf-8"))
    names = ["mine/strict.yaml", "judges/gpt_4o.yaml", judge_of("inline", prompt_file="own.md")]
    path.write_text(yaml.safe_dump({**config, "judges": names}), "utf-8")

    strict, ours, inline = load_evaluation(path).judges
    assert (strict.name, ours.name) == ("strict", "gpt_4o")
    assert strict.prompt_file == own.parent / "strict.md"
    assert inline.prompt_file == tmp_path / "own.md"
    assert rubric_prompt(strict, "overall").text.startswith("Be strict.\n\nWrite your assessment")
    assert "Be strict" not in rubric_prompt(strict, "text_rendering").text


def test_the_scale_stands_in_the_instructions() -> None:
    from echo_hf.config.judges import JudgeConfig

    whole = rubric_prompt(JudgeConfig(**judge_of(scale=[0, 100])), "overall").text
    assert "a whole number from 0 (worst) to 100 (best)" in whole
    assert 'for example "Rating: [[50]]"' in whole
    finer = rubric_prompt(JudgeConfig(**judge_of(decimals=True, mode="structured")), "overall").text
    assert "decimals allowed, from 1 (worst) to 10 (best)" in finer
    assert "[[" not in finer


BAD_JUDGES: list[tuple[dict[str, Any], str]] = [
    ({"scale": [10, 1]}, r"scale is \[10, 1\]: expected the lowest first"),
    ({"scale": [1, 9.5]}, "expected whole numbers, or decimals: true"),
    ({"mode": "jsno"}, "judges.0.mode is 'jsno'"),
    ({"rubrics": ["overal"]}, "'overal'"),
    ({"rubrics": []}, "rubrics"),
    ({"repeats": 0}, "repeats is 0"),
    ({"pictures": "tiny"}, "'tiny'"),
    ({"engine": {"kind": "openai", "api_key": "sk-123"}}, "'api_key'.*environment variable"),
    ({"status": "substitute"}, "stands_for and a note"),
    ({"stands_for": "GPT-4o"}, "status is 'current'"),
    ({"scael": [1, 10]}, "unknown key.*'scael'; did you mean 'scale'"),
]


@pytest.mark.parametrize(
    ("wrong", "said"), BAD_JUDGES, ids=[str(list(one)) for one, _ in BAD_JUDGES]
)
def test_a_mistake_in_a_judge_is_one_line(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    """What was wrong and what was expected; never a secret."""
    path = config_of(tmp_path, [{**judge_of(), **wrong}])
    with pytest.raises(ConfigError, match=said) as raised:
        load_evaluation(path)
    assert "\n" not in str(raised.value)
    assert "sk-123" not in str(raised.value)


def test_a_file_with_a_mistake_is_named(tmp_path: Path) -> None:
    path = tmp_path / "strict.yaml"
    path.write_text(yaml.safe_dump(judge_of("strict", scale=[10, 1])), "utf-8")
    with pytest.raises(ConfigError) as raised:
        read_judge(path)
    assert str(raised.value) == f"{path}: scale is [10, 1]: expected the lowest first"


def test_two_judges_have_two_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two are called 'mira'"):
        load_evaluation(config_of(tmp_path, [judge_of(), judge_of()]))


def test_a_judge_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = config_of(tmp_path)
    path.write_text(path.read_text("utf-8") + "systems: []\n", "utf-8")
    config = yaml.safe_load(path.read_text("utf-8"))
    path.write_text(yaml.safe_dump({**config, "judges": ["judges/none.yaml"]}), "utf-8")
    with pytest.raises(ConfigError, match=r"no judge '.*none.yaml'.*qwen2_5_vl_32b"):
        load_evaluation(path)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", None], ids=["empty", "bytes", "missing"])
def test_instructions_that_cannot_be_read_are_refused(
    tmp_path: Path, content: bytes | None
) -> None:
    path = config_of(tmp_path, [judge_of(prompt_file="own.md")])
    if content is not None:
        (tmp_path / "own.md").write_bytes(content)
    (judge,) = load_evaluation(path).judges
    with pytest.raises(ConfigError, match=r"judge 'mira': prompt_file .*own.md"):
        rubric_prompt(judge, "overall")
