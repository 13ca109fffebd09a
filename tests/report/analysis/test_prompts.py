"""Lists of prompts: read from files and datasets, their words, lengths and languages."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.evaluation import Reference
from echo_hf.errors import SourceError
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.prompts import (
    UnsegmentedError,
    first_bigram,
    languages,
    lengths,
    prompt_set,
    read_reference,
    word_definition,
    words,
)

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
    assert list(words(text)) == plain


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
    assert list(words(text)) == expected


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
    assert first_bigram(text) == first
    assert list(words("转换成Q版 3D人物")) == ["转换", "成", "q", "版", "3d", "人物"]
    assert word_definition()["icu"] is not None


@pytest.mark.skipif(not NO_ICU, reason="icu4py is installed here")
def test_without_icu_such_a_text_is_not_guessed_at() -> None:
    with pytest.raises(UnsegmentedError):
        first_bigram("将照片里的两个人")
    assert first_bigram("a photo 将照片") == ("a", "photo")
    assert word_definition()["icu"] is None


def test_quartiles_are_those_of_the_standard_library() -> None:
    prompts = ["a", "a red cat", "a cat", "draw two cats on the roof", "one two three four"]
    (found,) = lengths([prompt_set("some", prompts)]).found or ()
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
    (found,) = languages([prompt_set("some", prompts)]).found or ()
    assert found.prompts == {"en": 2, "de": 1, "ja": 1, "unknown": 1, "zh": 1}


@pytest.mark.skipif(not NO_LINGUA, reason="lingua is installed here")
def test_without_lingua_the_part_says_so() -> None:
    part = languages([prompt_set("some", ["a cat"])])
    assert part.reason is NotAnalyzed.MISSING_EXTRA
    assert 'pip install "echo-hf[analysis]"' in str(part.detail)
