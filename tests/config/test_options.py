"""The section `analysis` of a config."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from echo_hf.config.loading import load_config
from echo_hf.errors import ConfigError
from echo_hf.pipeline.run_folder import RunFolder

BASE = """
name: some
target: {name: Lumen Image, developer: Northlight, released: 2026-03-02}
posts: [{source: quickstart}]
engines: {text: {kind: rules}}
"""


def _written(folder: Path, analysis: object) -> Path:
    file = folder / "config.yaml"
    file.write_text(BASE + yaml.safe_dump({"analysis": analysis}), "utf-8")
    return file


def test_files_are_relative_to_the_config(tmp_path: Path) -> None:
    """References, the font and models that are folders; one path or several."""
    section = {
        "references": [{"name": "a", "path": "a.txt"}, {"name": "b", "path": ["b.txt", "/c.txt"]}],
        "font": "cjk.otf",
        "perplexity": {},
        "embedding": {"model": "encoder"},
    }
    (tmp_path / "encoder").mkdir()
    options = load_config(_written(tmp_path, section)).analysis
    assert [one.path for one in options.references] == [
        (tmp_path / "a.txt",),
        (tmp_path / "b.txt", Path("/c.txt")),
    ]
    assert options.font == tmp_path / "cjk.otf"
    assert options.embedding is not None
    assert options.embedding.model == str(tmp_path / "encoder")
    assert options.perplexity is not None
    assert options.perplexity.model == "EleutherAI/pythia-12b"


def test_nothing_has_to_be_said(tmp_path: Path) -> None:
    """No reference, no model: nothing is downloaded that nobody asked for."""
    options = load_config(_written(tmp_path, {})).analysis
    assert (options.references, options.perplexity, options.embedding) == ((), None, None)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"referenecs": []}, "did you mean 'references'"),
        ({"references": [{"name": "a"}]}, "expected either path"),
        ({"references": [{"name": "a", "path": "a", "dataset": "b/c"}]}, "expected either path"),
        ({"references": [{"name": "a", "dataset": "b/c", "column": "p"}]}, "expected revision"),
        ({"references": [{"name": "a", "path": "a.csv"}]}, "expected the column of 'a.csv'"),
        ({"references": [{"name": "benchmark", "path": "a"}]}, "expected another name"),
        ({"references": [{"name": "a", "path": "a"}] * 2}, "two are called 'a'"),
        ({"perplexity": {"window": 8, "stride": 8}}, "expected a smaller stride"),
        ({"similarity": 0}, "greater than 0"),
        ({"task_engine": {"kind": "openai", "api_key": "sk-1"}}, "expected no secret"),
        ({"embedding": {"modle": "x"}}, "did you mean 'model'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, section: object, said: str) -> None:
    """One line with the key and what was expected."""
    with pytest.raises(ConfigError) as refused:
        load_config(_written(tmp_path, section))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_saved_config_reads_as_it_was(tmp_path: Path) -> None:
    """A run keeps its config with every default written out; that file is a config as well."""
    references = [
        {"name": "a", "path": "a.csv", "column": "p", "inputs": 1},
        {"name": "b", "dataset": "o/b", "column": "p", "revision": "v1"},
    ]
    engine = {"kind": "openai", "model": "m"}
    section = {"references": references, "embedding": {}, "task_engine": engine}
    config = load_config(_written(tmp_path, section))
    RunFolder(tmp_path).save_config(config)
    assert load_config(tmp_path / "config.yaml") == config
