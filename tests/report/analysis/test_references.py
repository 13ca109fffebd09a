"""Prompt sets as files of several formats, and as datasets."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from datasets import Dataset

from echo_hf.config.evaluation import Reference
from echo_hf.errors import HubError, SourceError
from echo_hf.report.analysis.references import read_reference

PROMPTS = ("a cat, a dog", 'the word "STOP"', "将照片")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prompts.txt", "\n".join(PROMPTS) + "\n\n"),
        ("prompts.csv", 'prompt,n\n"a cat, a dog",1\n"the word ""STOP""",2\n将照片,3\n'),
        ("prompts.tsv", 'n\tprompt\n1\ta cat, a dog\n2\tthe word "STOP"\n3\t将照片\n'),
        ("prompts.jsonl", "\n".join(json.dumps({"prompt": one}) for one in PROMPTS)),
        ("bom.csv", '\ufeffprompt\r\n"a cat, a dog"\r\n"the word ""STOP"""\r\n将照片\r\n'),
    ],
)
def test_every_format_gives_the_same_prompts(tmp_path: Path, name: str, text: str) -> None:
    """Quotes, commas, byte order marks and line ends are the format's, not the prompt's."""
    file = tmp_path / name
    file.write_bytes(text.encode())
    found = read_reference(Reference(name="some", path=file, column="prompt"))
    assert found.prompts == PROMPTS
    assert found.source["files"] == {name: hashlib.sha256(text.encode()).hexdigest()}


def test_a_line_ends_where_files_end_it(tmp_path: Path) -> None:
    """Unicode's own line separators stand within prompts that people copied."""
    text = "a cat\u2028and a dog\r\na\x0bb\x85c\rthe last\n"
    (tmp_path / "a.txt").write_bytes(text.encode())
    found = read_reference(Reference(name="some", path=tmp_path / "a.txt"))
    assert found.prompts == ("a cat\u2028and a dog", "a\x0bb\x85c", "the last")


def test_several_files_are_one_set(tmp_path: Path) -> None:
    """In the order of the config."""
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text(f"from {name}\n", "utf-8")
    files = [tmp_path / "b.txt", tmp_path / "a.txt"]
    assert read_reference(Reference(name="two", path=files)).prompts == ("from b.txt", "from a.txt")


def test_rows_without_a_prompt_are_counted(tmp_path: Path) -> None:
    """Numbers, nulls, empty and broken texts are no prompts; the others are read."""
    rows = [{"p": "a cat"}, {"p": None}, {"p": 3}, {"p": " "}, {"p": "\ud800"}, {"q": "x"}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found = read_reference(Reference(name="some", path=tmp_path / "a.jsonl", column="p"))
    assert found.prompts == ("a cat",)
    assert {str(reason): rows for reason, rows in found.left_out.items()} == {
        "no_text": 4,
        "broken_text": 1,
    }


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"text\na cat\n", "unknown column 'prompt'; known: text"),
        ("a.jsonl", b'{"prompt": "a"}\n[1]\n', "line 2 is not a JSON object"),
        ("a.jsonl", b"[" * 100_000, "line 1 is not a JSON object"),
        ("a.txt", b"a cat\n\xff\xfe", "not UTF-8 (byte 6)"),
        ("a.csv", b"prompt,n\na cat, a dog,1\n", "3 cells in 'a cat, a dog,1': expected 2"),
        ("a.csv", b'prompt\n"a cat, a dog\n', "expected quotes round a whole cell"),
        ("a.csv", b'prompt\n"a" cat, a dog\n', "expected quotes round a whole cell"),
        ("a.tsv", b"prompt\na cat\ta dog\n", "2 cells"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    """One line: the file, what is wrong, what was expected."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError) as refused:
        read_reference(Reference(name="some", path=tmp_path / name, column="prompt"))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """With its path, and what it is relative to."""
    with pytest.raises(SourceError, match=r"no reference '.*gone.txt'"):
        read_reference(Reference(name="some", path=tmp_path / "gone.txt"))
    with pytest.raises(SourceError, match="not a regular file"):
        read_reference(Reference(name="some", path=tmp_path))


def test_a_dataset_is_read_at_its_revision(tmp_path: Path) -> None:
    """A folder in place of a repository loads through the same call; a wrong column is named."""
    Dataset.from_dict({"prompt": list(PROMPTS)}).to_parquet(tmp_path / "train.parquet")
    given = {"name": "hub", "dataset": str(tmp_path), "revision": "v1"}
    found = read_reference(Reference(**given, column="prompt"))
    assert found.prompts == PROMPTS
    assert found.source["revision"] == "v1"
    with pytest.raises(HubError, match="unknown column 'prmpt'; did you mean 'prompt'"):
        read_reference(Reference(**given, column="prmpt"))


def test_a_dataset_that_is_not_there_is_named() -> None:
    """One line with the set's name."""
    with pytest.raises(HubError, match="cannot load reference 'hub'"):
        read_reference(
            Reference(name="hub", dataset="/no/such/folder", revision="v1", column="prompt")
        )
