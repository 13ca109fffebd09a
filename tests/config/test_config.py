"""What configs say of judges, and the files of those that are brought along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.config.judges import read_judge, shipped_judges
from echo_hf.engines.base import engine_names, make_engine
from echo_hf.errors import ConfigError
from echo_hf.judging.rate import rubric_prompt
from echo_hf.systems.benchmark import load_evaluation
from tests.judging.judges_for_tests import config_of, judge_of

SHIPPED = list(shipped_judges())
STATUS = {
    "gpt_4o": "substitute",
    "gemini_2_0_flash": "substitute",
    "qwen2_5_vl_32b": "as_published",
    "gpt_6_luna": "current",
    "qwen3_vl_32b": "current",
}


def test_the_papers_judges_and_two_of_today_are_brought_along() -> None:
    """One of the three can be had as it was; a substitute says what it stands in for, and why."""
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
    """Options are checked, nothing is loaded, and no key is needed for that."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    judge = read_judge(file)
    assert judge.engine.kind in engine_names()
    engine = make_engine(judge.engine.kind, **judge.engine.options)
    assert engine.stored


def test_files_are_found_beside_the_config_and_among_ours(tmp_path: Path) -> None:
    """The nearer one counts; its own instructions are found beside it, whoever names it."""
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
    """Lowest, highest, an example of it, and whether decimals count."""
    from echo_hf.config.judges import JudgeConfig

    whole = rubric_prompt(JudgeConfig(**judge_of(scale=[0, 100])), "overall").text
    assert "a whole number from 0 (worst) to 100 (best)" in whole
    assert 'for example "Rating: [[50]]"' in whole
    finer = rubric_prompt(JudgeConfig(**judge_of(decimals=True, mode="structured")), "overall").text
    assert "decimals allowed, from 1 (worst) to 10 (best)" in finer
    assert "[[" not in finer


BAD: list[tuple[dict[str, Any], str]] = [
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


@pytest.mark.parametrize(("wrong", "said"), BAD, ids=[str(list(one)) for one, _ in BAD])
def test_a_mistake_is_one_line(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    """What was wrong and what was expected; never a secret."""
    path = config_of(tmp_path, [{**judge_of(), **wrong}])
    with pytest.raises(ConfigError, match=said) as raised:
        load_evaluation(path)
    assert "\n" not in str(raised.value)
    assert "sk-123" not in str(raised.value)


def test_a_file_with_a_mistake_is_named(tmp_path: Path) -> None:
    """Its path, the value, what was expected."""
    path = tmp_path / "strict.yaml"
    path.write_text(yaml.safe_dump(judge_of("strict", scale=[10, 1])), "utf-8")
    with pytest.raises(ConfigError) as raised:
        read_judge(path)
    assert str(raised.value) == f"{path}: scale is [10, 1]: expected the lowest first"


def test_two_judges_have_two_names(tmp_path: Path) -> None:
    """The table of ratings could not tell them apart."""
    with pytest.raises(ConfigError, match="two are called 'mira'"):
        load_evaluation(config_of(tmp_path, [judge_of(), judge_of()]))


def test_a_judge_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With an example of one that is."""
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
    """Before anybody is asked."""
    path = config_of(tmp_path, [judge_of(prompt_file="own.md")])
    if content is not None:
        (tmp_path / "own.md").write_bytes(content)
    (judge,) = load_evaluation(path).judges
    with pytest.raises(ConfigError, match=r"judge 'mira': prompt_file .*own.md"):
        rubric_prompt(judge, "overall")
