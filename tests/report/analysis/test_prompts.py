"""Lists of prompts: read from files and datasets, their words, lengths and languages."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from echo_hf.config.evaluation import AnalysisOptions, Reference, load_named_files
from echo_hf.errors import ConfigError, SourceError
from echo_hf.report.analysis.prompts import (
    PromptSet,
    UnsegmentedError,
    define_words,
    detect_languages,
    first_two_words,
    measure_lengths,
    prompt_set,
    read_reference,
    read_references,
    split_words,
)
from echo_hf.report.analysis.result import NotAnalyzed
from tests.local_hub import LocalHub
from tests.local_hub_repository import StoredFile

TEXTS = ("a cat, a dog", 'the word "STOP"', "将照片")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prompts.txt", "\n".join(TEXTS) + "\n\n"),
        ("prompts.csv", 'prompt,n\n"a cat, a dog",1\n"the word ""STOP""",2\n将照片,3\n'),
        ("prompts.tsv", 'n\tprompt\n1\ta cat, a dog\n2\tthe word "STOP"\n3\t将照片\n'),
        ("prompts.jsonl", "\n".join(json.dumps({"prompt": one}) for one in TEXTS)),
        ("bom.csv", '\ufeffprompt\r\n"a cat, a dog"\r\n"the word ""STOP"""\r\n将照片\r\n'),
    ],
)
def test_every_format_gives_the_same_prompts(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_bytes(text.encode())
    found = read_reference(Reference(name="some", path=file, column="prompt"))
    assert found.prompts == TEXTS
    assert found.source["files"] == {name: hashlib.sha256(text.encode()).hexdigest()}


def test_a_line_ends_where_files_end_it(tmp_path: Path) -> None:
    text = "a cat\u2028and a dog\r\na\x0bb\x85c\rthe last\n"
    (tmp_path / "a.txt").write_bytes(text.encode())
    found = read_reference(Reference(name="some", path=tmp_path / "a.txt"))
    assert found.prompts == ("a cat\u2028and a dog", "a\x0bb\x85c", "the last")


def test_rows_without_a_prompt_are_counted(tmp_path: Path) -> None:
    rows = [{"p": "a cat"}, {"p": None}, {"p": 3}, {"p": " "}, {"p": "\ud800"}, {"q": "x"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found = read_reference(Reference(name="some", path=tmp_path / "a.jsonl", column="p"))
    assert found.prompts == ("a cat",)
    assert found.left_out == {"no_text": 4, "broken_text": 1}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"text\na cat\n", "unknown column 'prompt'; known: text"),
        ("a.jsonl", b'{"prompt": "a"}\n[1]\n', "row 2 is [1]"),
        ("a.jsonl", b"[" * 100_000, "is no jsonl (RecursionError"),
        ("a.txt", b"a cat\n\xff\xfe", "byte 0xff in position 6"),
        ("a.csv", b"prompt,n\na cat, a dog,1\n", "row 1 is {'prompt': 'a cat'"),
        # Nothing is swallowed by an open quotation mark.
        ("a.csv", b'prompt\n"a cat, a dog\n', "a.csv' is no csv"),
        ("a.csv", b'prompt\n"a" cat, a dog\n', "a.csv' is no csv"),
        ("a.tsv", b"prompt\na cat\ta dog\n", "row 1 is"),
        ("a.parquet", b"PAR1", "a.parquet' is no parquet"),
        ("gone.txt", None, "gone.txt' (No such file or directory)"),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError) as refused:
        read_reference(Reference(name="some", path=tmp_path / name, column="prompt"))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


REASON = "needs icu4py: see `make test-extras`"
NO_ICU = find_spec("icu4py") is None


@given(st.text(st.characters(max_codepoint=127)))
def test_of_ascii_text_words_are_what_the_usual_expression_finds(text: str) -> None:
    plain = [word for word in re.findall(r"\w+", text.lower()) if word.strip("_") or "_" in word]
    assert list(split_words(text)) == plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("एक बिल्ली की तस्वीर", ["एक", "बिल्ली", "की", "तस्वीर"]),
        ("cafe\u0301 au lait", ["caf\u00e9", "au", "lait"]),
        ("ΣΊΣΥΦΟΣ Ίσως", ["σίσυφοσ", "ίσωσ"]),
        ("می‌خواهم یک گربه", ["می‌خواهم", "یک", "گربه"]),
        ("그림 그려줘", ["그림", "그려줘"]),
        ("📷 — \u0301 !", []),
    ],
    ids=["hindi", "two code points", "greek", "persian joiner", "korean", "no word"],
)
def test_marks_and_joiners_stay_in_their_word(text: str, expected: list[str]) -> None:
    assert list(split_words(text)) == expected


@pytest.mark.extras
@pytest.mark.skipif(NO_ICU, reason=REASON)
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("将照片里的两个人转换成Q版人物", ("将", "照片")),
        ("この写真をジブリ風にして", ("この", "写真")),
        ("ภาพแมวน่ารัก", ("ภาพ", "แมว")),
    ],
    ids=["chinese", "japanese", "thai"],
)
def test_a_script_without_spaces_is_cut_into_words(text: str, first: tuple[str, str]) -> None:
    assert first_two_words(text) == first
    assert list(split_words("转换成Q版 3D人物")) == ["转换", "成", "q", "版", "3d", "人物"]
    assert define_words()["icu"] is not None


@pytest.mark.skipif(not NO_ICU, reason="icu4py is installed here")
def test_without_icu_such_a_text_is_not_guessed_at() -> None:
    with pytest.raises(UnsegmentedError):
        first_two_words("将照片里的两个人")
    assert first_two_words("a photo 将照片") == ("a", "photo")
    assert define_words()["icu"] is None


def test_quartiles_are_those_of_the_standard_library() -> None:
    prompts = ["a", "a red cat", "a cat", "draw two cats on the roof", "one two three four"]
    (found,) = measure_lengths([prompt_set("some", prompts)]).found or ()
    assert found.words is not None
    assert found.characters is not None
    for quartiles, counts in (
        (found.words, [len(one.split()) for one in prompts]),
        (found.characters, [len(one) for one in prompts]),
    ):
        expected = statistics.quantiles(counts, n=4, method="inclusive")
        assert [quartiles.low, quartiles.median, quartiles.high] == expected
    assert found.words_of == 5


NO_LINGUA = find_spec("lingua") is None


@pytest.mark.extras
@pytest.mark.skipif(NO_LINGUA, reason="needs lingua: see `make test-extras`")
def test_languages_are_those_that_people_can_read() -> None:
    prompts = [
        "Turn this photo into a watercolor painting with soft light",
        "Make the background of this picture a sunny beach",
        "将照片里的两个人转换成卡通人物",
        "この写真をアニメ風にしてください",
        "Erstelle ein Bild von einer Katze auf dem Dach",
        "???",
    ]
    (found,) = detect_languages([prompt_set("some", prompts)]).found or ()
    assert found.prompts == {"en": 2, "de": 1, "ja": 1, "unknown": 1, "zh": 1}


@pytest.mark.skipif(not NO_LINGUA, reason="lingua is installed here")
def test_without_lingua_the_part_says_so() -> None:
    part = detect_languages([prompt_set("some", ["a cat"])])
    assert part.reason is NotAnalyzed.MISSING_EXTRA
    assert 'pip install "echo-hf[analysis]"' in str(part.detail)


EDITS = ["add a hat", "make it night", "将照片变成水彩"]
# One JSON string a line, as everybody can make it again.
SHA256 = hashlib.sha256("\n".join(json.dumps(one) for one in EDITS).encode()).hexdigest()
REPO = "mira/edits"


def parquet(**columns: list[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue().to_pybytes())


FILES = {
    "a.parquet": StoredFile(parquet(prompt=EDITS[:2], image=[b"x"] * 2), lfs=True),
    "b.parquet": StoredFile(parquet(prompt=EDITS[2:]), lfs=True),
    "a.tsv": StoredFile(b"n\tprompt\n" + "".join(f"1\t{t}\n" for t in EDITS).encode()),
    "a.txt": StoredFile("\n".join(EDITS).encode()),
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
    assert found.prompts == tuple(EDITS)
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
    assert read(reference("a.tsv", sha256=SHA256), tmp_path, hub).prompts == tuple(EDITS)
    wrong = reference("a.tsv", sha256="0" * 64)
    for root in (tmp_path, tmp_path / "fresh"):  # kept without it before, and not yet
        sets, missing = read_references([wrong], root, hub.api())
        assert sets == []
        assert SHA256 in missing["edits"]
    assert not (tmp_path / "fresh" / "references").exists()


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


def test_a_column_that_is_not_there_is_refused(hub: LocalHub, tmp_path: Path) -> None:
    for file in ("b.parquet", "a.tsv"):
        with pytest.raises(SourceError, match="column 'prmpt'"):
            read_references([reference(file, column="prmpt")], tmp_path, hub.api())


def test_without_the_hub_what_is_kept_is_read_and_the_rest_named(
    hub: LocalHub, tmp_path: Path
) -> None:
    drawn = read(reference("a.txt", draw=2), tmp_path, hub)
    assert len(drawn.prompts) == 2
    assert set(drawn.prompts) < set(EDITS)
    assert read(reference("a.txt", draw=2), tmp_path / "again", hub) == drawn
    hub.dead = True
    both = [reference("a.txt", draw=2), reference("a.tsv", name="new")]
    sets, missing = read_references(both, tmp_path, hub.api())
    assert sets == [drawn]
    assert "the Hub does not answer" in missing["new"]


def test_a_dataset_is_loaded_at_its_revision_and_kept(tmp_path: Path) -> None:
    Dataset.from_dict({"prompt": EDITS}).to_parquet(tmp_path / "train.parquet")
    one = Reference(name="hub", dataset=str(tmp_path), revision="v1", column="prompt")
    for _ in range(2):
        ((found,), missing) = read_references([one], tmp_path / "run")
        assert (found.prompts, missing) == (tuple(EDITS), {})
        assert (found.source["revision"], found.source["sha256"]) == ("v1", SHA256)
        (tmp_path / "train.parquet").unlink(missing_ok=True)
    misspelt = one.model_copy(update={"column": "prmpt", "dataset": "/no/such/folder"})
    _, missing = read_references([misspelt], tmp_path / "run")
    assert "cannot load reference 'hub'" in missing["hub"]


def test_the_sets_of_figure_3_are_named_by_commit_and_file() -> None:
    named = load_named_files(
        {"analysis": {"references": ["references/figure3.yaml"]}}, Path("nowhere")
    )
    sets = AnalysisOptions.model_validate(named["analysis"]).references
    assert {one.name: one.inputs for one in sets} == {
        "MagicBrush": 1,
        "EmuEdit": 1,
        "InstructPix2Pix": 1,
        "DiffusionDB": 0,
        "Pick-a-Pic": 0,
        "PartiPrompts": 0,
    }
    assert {one.column for one in sets if one.name == "PartiPrompts"} == {"Prompt"}
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
    assert load_named_files(given, tmp_path)["analysis"] == {
        "at": 3,
        "references": [
            own,
            {"name": "a", "path": [f"{folder}/a.txt"]},
            {"name": "b", "path": [f"{folder}/b.txt", "/c.txt"]},
        ],
    }
    (tmp_path / "sets" / "own.yaml").write_text("name: a\n", "utf-8")
    with pytest.raises(ConfigError, match="expected a list of references"):
        load_named_files(given, tmp_path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"path": "a.txt", "file": "a.txt"},
            "expected either path, one file or several, or dataset",
        ),
        (
            {"dataset": "a/b", "revision": "v1", "file": "a.txt", "split": "test"},
            "expected no config and split beside file",
        ),
    ],
)
def test_a_reference_names_one_place(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Reference.model_validate({"name": "a", **given})
