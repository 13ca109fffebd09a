"""What is checked against what."""

from __future__ import annotations

from pathlib import Path

import pytest

from echo_hf.builder.gold.check import TWO_WAYS, engine_choice, setting_of
from echo_hf.config.checks import EngineChoice
from echo_hf.errors import ConfigError
from tests.builder.gold.gold_for_tests import write_gold

OTHER = EngineChoice(kind="auto", model="org/small")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config beside a gold folder."""
    write_gold(tmp_path)
    return tmp_path / "config.yaml"


def test_an_engine_alone_is_checked_on_the_bundled_posts() -> None:
    """All stages ask it."""
    setting = setting_of(None, OTHER, None)

    assert setting.config.target.name == "Lumen Image"
    assert set(setting.config.engines.values()) == {OTHER}
    assert (setting.gold / "relevance.jsonl").exists()
    assert [one.source for one in setting.posts] == ["quickstart"]


def test_a_config_alone_is_checked_on_the_bundled_posts(config: Path) -> None:
    """Its engines and options, but the target that the bundled posts are about."""
    text = config.read_text().replace("rules}}", "rules}}\nstages: {relevance: {keep: [5]}}")
    config.write_text(text)
    setting = setting_of(config, None, None)

    assert setting.config.name == "mine"
    assert setting.config.target.name == "Lumen Image"
    assert setting.config.stages.relevance.keep == (5,)
    assert [one.kind for one in setting.config.engines.values()] == ["rules"]


def test_gold_is_about_the_target_of_the_config(config: Path, tmp_path: Path) -> None:
    """With posts beside the gold, or those of the config; and with another engine, if one likes."""
    setting = setting_of(config, OTHER, tmp_path / "gold")

    assert setting.config.target.name == "Tern 2"
    assert set(setting.config.engines.values()) == {OTHER}
    assert [one.path for one in setting.posts] == [tmp_path / "gold" / "posts.jsonl"]
    (tmp_path / "gold" / "posts.jsonl").unlink()
    assert setting_of(config, None, tmp_path / "gold").posts == setting.config.posts


def test_what_is_too_little(tmp_path: Path) -> None:
    """Somebody has to answer, and gold of one's own needs a target."""
    with pytest.raises(ConfigError) as caught:
        setting_of(None, None, None)
    assert str(caught.value) == TWO_WAYS
    assert "\n" not in TWO_WAYS
    with pytest.raises(ConfigError, match="only a config can name"):
        setting_of(None, OTHER, tmp_path)


def test_options_are_read_as_in_a_config() -> None:
    """Numbers are numbers, lists are lists; what is quoted stays a text."""
    choice = engine_choice(
        "auto", "org/m", ["temperature=0.5", "stop=[a, b]", "revision='1'", "seed=7", "note="]
    )

    assert choice is not None
    assert choice.options == {
        "model": "org/m",
        "temperature": 0.5,
        "stop": ["a", "b"],
        "revision": "1",
        "seed": 7,
        "note": None,
    }
    assert engine_choice(None) is None


BAD = {
    ("ruels", None, ()): "--engine: unknown engine 'ruels'; did you mean 'rules'?",
    (None, "org/m", ()): "without an engine",
    (None, None, ("seed=1",)): "without an engine",
    ("auto", None, ("seed",)): "expected KEY=VALUE",
    ("auto", None, ("seed=1", "seed=2")): "'seed' is given twice",
    ("auto", "org/m", ("model=org/n",)): "'model' is given twice",
    ("auto", None, ("kind=rules",)): "the kind of the engine is what --engine names",
    ("auto", None, ("seed=[1",)): "'seed' has a value that is not YAML",
    ("auto", None, ("x=!!python/object/apply:os.getcwd []",)): "not YAML",
    ("auto", None, ("api_key=sk-hush",)): "--option has 'api_key'",
    ("auto", None, ("base_url=https://ana:hush@example.org",)): "name and password",
    ("auto", None, ("sk-hush",)): "expected KEY=VALUE",
    ("auto", None, ("headers={authorization: hush}",)): "'headers.authorization'",
}


@pytest.mark.parametrize(("given", "said"), BAD.items(), ids=[str(given) for given in BAD])
def test_bad_options_are_one_line_without_secrets(
    given: tuple[str | None, str | None, tuple[str, ...]], said: str
) -> None:
    """The option is named; what may be a secret is not shown."""
    with pytest.raises(ConfigError) as caught:
        engine_choice(*given)
    told = str(caught.value)

    assert said in told
    assert "hush" not in told
    assert "\n" not in told
