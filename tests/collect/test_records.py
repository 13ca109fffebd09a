"""Taking files apart: each record once, with a place to find it by."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect import records
from echo_hf.collect.records import RECORDS, read_records
from echo_hf.config.sections import Posts
from echo_hf.errors import ConfigError, SourceError

GOOD = '{"url": "https://example.org/a"}'


def entry(path: Path, source: str = "jsonl", *keywords: str) -> Posts:
    """A config entry."""
    return Posts(source=source, path=path, keywords=keywords)


def written(folder: Path, content: bytes | str, name: str = "posts.jsonl") -> Path:
    """A file with this content."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n \r\n\t\n", []),
        (b"a", [(1, "a")]),
        (b"a\nb\n", [(1, "a"), (2, "b")]),
        (b"\na\n\n\nb", [(2, "a"), (5, "b")]),
        (b"a\r\nb\r\n", [(1, "a"), (2, "b")]),
        (b"a\rb", [(1, "a\rb")]),
        ("a\u2028b\nc\x0bd\x85e".encode(), [(1, "a\u2028b"), (2, "c\x0bd\x85e")]),
        (b"\xef\xbb\xbfa\nb\n\xef\xbb\xbfc", [(1, "a"), (2, "b"), (3, "c")]),
        (b"a\nb\x00c\nd", [(1, "a"), (2, "b\x00c"), (3, "d")]),
        (b'a\n"\xff\xfe"\nd', [(1, "a"), (2, '"\\xff\\xfe"'), (3, "d")]),
        (b'a\n"\xf0\x9f\xa6\nd', [(1, "a"), (2, '"\\xf0\\x9f\\xa6'), (3, "d")]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_line_is_a_record(
    tmp_path: Path, content: bytes, expected: list[tuple[int, str]], packed: bool
) -> None:
    """Blank lines count but are none; a mark, a line end or a bad byte spoils no other line."""
    path = tmp_path / ("posts.jsonl.gz" if packed else "posts.jsonl")
    path.write_bytes(gzip.compress(content) if packed else content)
    read = read_records([entry(path)]).to_list()

    assert [(row["place"], row["record"]) for row in read] == [
        (f"{path.name}:{number}", text) for number, text in expected
    ]


def test_a_line_with_a_byte_that_is_no_text_is_no_json(tmp_path: Path) -> None:
    """The byte is shown as an escape that JSON does not know, so the line cannot pass."""
    path = written(tmp_path, b'{"url": "https://example.org/\xff"}')
    (row,) = read_records([entry(path)]).to_list()

    assert "\\xff" in row["record"]
    with pytest.raises(ValueError, match="escape"):
        json.loads(row["record"])


def test_a_long_line_is_one_record(tmp_path: Path) -> None:
    """Nothing is cut."""
    (row,) = read_records([entry(written(tmp_path, "x" * 200_000))]).to_list()

    assert row["record"] == "x" * 200_000


def test_records_have_the_declared_columns(tmp_path: Path) -> None:
    """A record knows its reader, its folder and the search terms of its file."""
    dataset = read_records([entry(written(tmp_path, GOOD), "jsonl", "lumen", "l-image")])

    assert dataset.features == RECORDS.features
    assert dataset.to_list() == [
        {
            "place": "posts.jsonl:1",
            "source": "jsonl",
            "folder": str(tmp_path.resolve()),
            "keywords": ["lumen", "l-image"],
            "record": GOOD,
        }
    ]


def test_no_record_still_has_the_columns(tmp_path: Path) -> None:
    """An empty file is zero records, not an error here."""
    dataset = read_records([entry(written(tmp_path, ""))])

    assert (len(dataset), dataset.features) == (0, RECORDS.features)


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Places hold no more of the path than is needed, and nothing of the machine."""
    first = written(tmp_path / "a" / "deep", "1\n2")
    second = written(tmp_path / "b" / "deep", "3")
    read = read_records([entry(first), entry(second)]).to_list()

    assert [(row["place"], row["record"]) for row in read] == [
        ("a/deep/posts.jsonl:1", "1"),
        ("a/deep/posts.jsonl:2", "2"),
        ("b/deep/posts.jsonl:1", "3"),
    ]


def test_a_file_is_named_once(tmp_path: Path) -> None:
    """Also by way of a link or of another spelling of its path."""
    path = written(tmp_path / "a", GOOD)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)

    for other in (path, link, tmp_path / "a" / ".." / "a" / "posts.jsonl"):
        with pytest.raises(ConfigError, match=r"posts\.jsonl' is named twice: name each file once"):
            read_records([entry(path), entry(other)])


def test_a_source_without_a_file_says_so() -> None:
    """Only bundled posts need no path."""
    with pytest.raises(ConfigError, match="source 'jsonl' has no path"):
        read_records([Posts(source="jsonl")])


def test_an_unknown_source_names_the_nearest(tmp_path: Path) -> None:
    """A misspelt source is a config error with a hint."""
    with pytest.raises(ConfigError, match="unknown source 'jsnol'; did you mean 'jsonl'"):
        read_records([entry(written(tmp_path, GOOD), "jsnol")])


def test_a_file_that_cannot_be_read_at_all_stops_with_one_line(tmp_path: Path) -> None:
    """Missing, a folder, or packed data that is damaged or cut off."""
    packed = gzip.compress(bytes(range(256)) * 400)
    spoiled = packed[:20] + b"\xff" * 20 + packed[40:]
    cases = {
        tmp_path / "none.jsonl": "no file .*none.jsonl': expected posts for source 'jsonl'",
        tmp_path: "is not a regular file: expected posts for source 'jsonl'",
        written(tmp_path, "no gzip", "a.gz"): "cannot read .*a.gz'",
        written(tmp_path, packed[:-20], "b.gz"): "cannot read .*b.gz'",
        written(tmp_path, spoiled, "c.gz"): "cannot read .*c.gz'",
    }
    for path, message in cases.items():
        with pytest.raises(SourceError, match=message) as caught:
            read_records([entry(path)])
        assert "\n" not in str(caught.value)


def test_a_fingerprint_is_made_from_content(tmp_path: Path) -> None:
    """Equal files elsewhere are equal; a changed line, term or reader is not."""
    here = written(tmp_path / "here", GOOD + "\n")
    there = written(tmp_path / "there", GOOD)
    other = written(tmp_path / "other", GOOD.replace("org/a", "org/b"))

    def fingerprint(one: Posts) -> str:
        return str(read_records([one])._fingerprint)

    known = fingerprint(entry(here))
    assert fingerprint(entry(there)) == known
    changed = [entry(other), entry(here, "jsonl", "lumen"), entry(here, "snscrape")]
    assert len({known, *map(fingerprint, changed)}) == 4


@given(st.lists(st.sampled_from(["ab", "a", "b", ""]), max_size=4), st.integers(1, 3))
def test_the_size_of_batches_changes_no_record(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], batch: int
) -> None:
    """A file is read in batches of many records or of many characters, and none is lost."""
    path = written(tmp_path_factory.mktemp("records"), "\n".join(texts))
    expected = [text for text in texts if text]
    for name, value in (("BATCH", batch), ("BATCH_CHARACTERS", batch)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, name, value)
            assert read_records([entry(path)])["record"][:] == expected


def test_the_bundled_posts_take_no_path(tmp_path: Path) -> None:
    """A path beside a source that has its own posts would be ignored: it is refused."""
    with pytest.raises(ConfigError, match="leave the path out"):
        read_records([Posts(source="quickstart", path=tmp_path / "mine.jsonl")])
