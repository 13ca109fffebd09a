"""Prompt sets of the Hub: a commit fixes them, and a run keeps what it fetched first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import Dataset
from pydantic import ValidationError

from echo_hf.config.evaluation import AnalysisOptions, Reference, with_files
from echo_hf.config.systems import shipped_configs
from echo_hf.errors import ConfigError, SourceError
from echo_hf.report.analysis.prompts import PromptSet, read_references
from tests.local_hub import LocalHub
from tests.local_hub_repository import StoredFile

TEXTS = ["add a hat", "make it night", "将照片变成水彩"]
# One JSON string a line, as everybody can make it again.
SHA256 = hashlib.sha256("\n".join(json.dumps(one) for one in TEXTS).encode()).hexdigest()
REPO = "mira/edits"
PARTI = Path(__file__).resolve().parents[4] / "shared/data/prompts/partiprompts/PartiPrompts.tsv"


def parquet(**columns: list[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


FILES = {
    "a.parquet": StoredFile(parquet(prompt=TEXTS[:2], image=[b"x"] * 2), lfs=True),
    "b.parquet": StoredFile(parquet(prompt=TEXTS[2:]), lfs=True),
    "a.tsv": StoredFile(b"n\tprompt\n" + "".join(f"1\t{t}\n" for t in TEXTS).encode()),
    "a.txt": StoredFile("\n".join(TEXTS).encode()),
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalHub]:
    for name in ("HF_HUB_DISABLE_XET", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setattr(huggingface_hub.constants, name, True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with LocalHub() as running:
        running.api().create_repo(REPO, repo_type="dataset")
        repository = running.repositories[REPO]
        repository.branches["main"] = repository.add("edits", None, FILES)
        yield running


def reference(file: str | list[str] | None = None, **more: Any) -> Reference:
    named = {"name": "edits", "dataset": REPO, "revision": "main", "column": "prompt"}
    return Reference.model_validate({**named, **({"file": file} if file else {}), **more})


def read(one: Reference, root: Path, hub: LocalHub) -> PromptSet:
    sets, missing = read_references([one], root, hub.api())
    assert missing == {}
    return sets[0]


@pytest.mark.parametrize("file", ["a.tsv", "a.txt", ["a.parquet", "b.parquet"]])
def test_files_of_every_kind_give_their_prompts_and_one_digest(
    hub: LocalHub, tmp_path: Path, file: str | list[str]
) -> None:
    found = read(reference(file), tmp_path, hub)
    assert found.prompts == tuple(TEXTS)
    assert found.source["sha256"] == SHA256
    assert found.source["commit"] == hub.repositories[REPO].branches["main"]


def test_what_was_fetched_first_is_kept_whatever_becomes_of_the_branch(
    hub: LocalHub, tmp_path: Path
) -> None:
    first = read(reference("a.tsv"), tmp_path, hub)
    repository = hub.repositories[REPO]
    other = {"a.tsv": StoredFile(b"n\tprompt\n1\tsomething else\n")}
    repository.branches["main"] = repository.add("later", None, other)
    asked = len(hub.asked)
    assert read(reference("a.tsv"), tmp_path, hub) == first
    assert len(hub.asked) == asked
    # Another run takes what there is now.
    assert read(reference("a.tsv"), tmp_path / "other", hub).prompts == ("something else",)
    # So do other settings of this one.
    drawn = read(reference("a.tsv", draw=1), tmp_path, hub)
    assert drawn.prompts == ("something else",)


def test_a_digest_in_the_config_is_checked(hub: LocalHub, tmp_path: Path) -> None:
    assert read(reference("a.tsv", sha256=SHA256), tmp_path, hub).prompts == tuple(TEXTS)
    wrong = reference("a.tsv", sha256="0" * 64)
    for root in (tmp_path, tmp_path / "fresh"):  # kept without it before, and not yet
        sets, missing = read_references([wrong], root, hub.api())
        assert sets == []
        assert SHA256 in missing["edits"]
    assert not (tmp_path / "fresh" / "references").exists()


def test_a_kept_file_that_somebody_changed_is_refused(hub: LocalHub, tmp_path: Path) -> None:
    read(reference("a.tsv"), tmp_path, hub)
    kept = tmp_path / "references" / "edits.json"
    for text in (kept.read_text("utf-8").replace("a hat", "a cat"), "{", "[]", "{}"):
        kept.write_text(text, "utf-8")
        with pytest.raises(SourceError, match=r"edits\.json' was changed: remove it"):
            read_references([reference("a.tsv")], tmp_path, hub.api())


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (reference("none.tsv"), "cannot fetch 'none.tsv' of 'mira/edits'"),
        (reference("a.txt", format="parquet"), "it is no Parquet file"),
        (reference("a.tsv", revision="v9"), "no such revision"),
        (reference("a.tsv", dataset="mira/nothing"), "no such dataset"),
    ],
)
def test_what_cannot_be_fetched_says_why_and_the_others_are_read(
    hub: LocalHub, tmp_path: Path, one: Reference, said: str
) -> None:
    sets, missing = read_references([one, reference("a.txt", name="b")], tmp_path, hub.api())
    assert [each.name for each in sets] == ["b"]
    assert said in missing["edits"]


@pytest.mark.parametrize("file", ["b.parquet", "a.tsv"])
def test_a_column_that_is_not_there_is_refused(hub: LocalHub, tmp_path: Path, file: str) -> None:
    with pytest.raises(SourceError, match="column 'prmpt'"):
        read_references([reference(file, column="prmpt")], tmp_path, hub.api())


def test_without_the_hub_what_is_kept_is_read_and_the_rest_named(
    hub: LocalHub, tmp_path: Path
) -> None:
    read(reference("a.txt"), tmp_path, hub)
    hub.dead = True
    both = [reference("a.txt"), reference("a.tsv", name="new")]
    sets, missing = read_references(both, tmp_path, hub.api())
    assert [one.prompts for one in sets] == [tuple(TEXTS)]
    assert "the Hub does not answer" in missing["new"]


def test_a_draw_is_the_same_each_time(hub: LocalHub, tmp_path: Path) -> None:
    drawn = [read(reference("a.txt", draw=2), tmp_path / name, hub).prompts for name in "ab"]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 2
    assert set(drawn[0]) < set(TEXTS)
    assert read(reference("a.txt", draw=9), tmp_path, hub).prompts == tuple(TEXTS)


def test_a_dataset_is_loaded_at_its_revision_and_kept(tmp_path: Path) -> None:
    Dataset.from_dict({"prompt": TEXTS}).to_parquet(tmp_path / "train.parquet")
    one = Reference(name="hub", dataset=str(tmp_path), revision="v1", column="prompt")
    for _ in range(2):
        ((found,), missing) = read_references([one], tmp_path / "run")
        assert (found.prompts, missing) == (tuple(TEXTS), {})
        assert (found.source["revision"], found.source["sha256"]) == ("v1", SHA256)
        (tmp_path / "train.parquet").unlink(missing_ok=True)
    misspelt = one.model_copy(update={"column": "prmpt", "dataset": "/no/such/folder"})
    _, missing = read_references([misspelt], tmp_path / "run")
    assert "cannot load reference 'hub'" in missing["hub"]


@pytest.mark.skipif(not PARTI.is_file(), reason="needs the shared prompt sets")
def test_parti_prompts_come_as_its_authors_published_them(hub: LocalHub, tmp_path: Path) -> None:
    """1,632 prompts, by its authors' page; read here as from the Hub, with the entry's settings."""
    shipped = yaml.safe_load((shipped_configs() / "references/figure3.yaml").read_bytes())
    entry = next(one for one in shipped if one["name"] == "PartiPrompts")
    repository = hub.repositories[REPO]
    files = {entry["file"]: StoredFile(PARTI.read_bytes())}
    commit = repository.add("parti", None, files)
    repository.branches["main"] = commit
    one = Reference.model_validate({**entry, "dataset": REPO, "revision": commit})
    assert len(read(one, tmp_path, hub).prompts) == 1632


# What a config says of them.


def test_the_sets_of_figure_3_are_named_by_commit_and_file() -> None:
    named = with_files({"analysis": {"references": ["references/figure3.yaml"]}}, Path("nowhere"))
    sets = AnalysisOptions.model_validate(named["analysis"]).references
    assert {one.name: one.inputs for one in sets} == {
        "MagicBrush": 1,
        "EmuEdit": 1,
        "InstructPix2Pix": 1,
        "DiffusionDB": 0,
        "Pick-a-Pic": 0,
        "PartiPrompts": 0,
    }
    for one in sets:
        assert one.file
        assert one.revision is not None
        assert len(one.revision) == 40


def test_a_file_of_references_stands_for_all_that_it_lists(tmp_path: Path) -> None:
    listed = [{"name": "a", "path": "a.txt"}, {"name": "b", "path": ["b.txt", "/c.txt"]}]
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "own.yaml").write_text(yaml.safe_dump(listed), "utf-8")
    own = {"name": "c", "path": "c.txt"}
    given = {"name": "x", "analysis": {"references": [own, "sets/own.yaml"], "at": 3}}
    folder = str(tmp_path / "sets")
    assert with_files(given, tmp_path)["analysis"] == {
        "at": 3,
        "references": [
            own,
            {"name": "a", "path": [f"{folder}/a.txt"]},
            {"name": "b", "path": [f"{folder}/b.txt", "/c.txt"]},
        ],
    }
    (tmp_path / "sets" / "own.yaml").write_text("name: a\n", "utf-8")
    with pytest.raises(ConfigError, match="expected a list of references"):
        with_files(given, tmp_path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "a.txt", "file": "a.txt"}, "expected either path"),
        ({"dataset": "a/b", "revision": "v1", "file": "a.csv"}, "expected the column of 'a.csv'"),
        ({"dataset": "a/b", "file": "a.txt"}, "expected either path"),
        (
            {"dataset": "a/b", "revision": "v1", "file": "a.txt", "split": "test"},
            "expected no config and split beside file",
        ),
        ({"file": "a.txt"}, "expected either path"),
    ],
)
def test_a_reference_names_one_place(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Reference.model_validate({"name": "a", **given})
