"""The word cloud."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.activity import SVG, word_cloud
from echo_hf.report.analysis.result import FailureKeyword

NO_CLOUD = find_spec("wordcloud") is None
HOSTILE = "<script>alert(1)</script>"


def _keyword(name: str, comments: int) -> FailureKeyword:
    return FailureKeyword(
        keyword=name, comments=comments, samples=1, spellings={}, by_month={}, examples=()
    )


KEYWORDS = [
    _keyword("colour cast", 9),
    _keyword(HOSTILE, 4),
    _keyword("\"' onload=x &amp;", 2),
    _keyword("顔が違う", 1),
]


@pytest.mark.extras
@pytest.mark.skipif(NO_CLOUD, reason="needs wordcloud: see `make test-extras`")
def test_words_are_text_and_nothing_else() -> None:
    """Whatever a keyword looks like, it is the text of a text element; there is no other kind."""
    part = word_cloud(KEYWORDS)
    assert part.found is not None
    root = ET.fromstring(part.found.svg)  # noqa: S314 - our own
    assert {element.tag for element in root.iter()} == {f"{{{SVG}}}svg", f"{{{SVG}}}text"}
    shown = {str(element.text): float(element.get("font-size", 0)) for element in root}
    assert set(shown) == {"colour cast", HOSTILE, "\"' onload=x &amp;"}
    assert max(shown, key=lambda word: shown[word]) == "colour cast"
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)


@pytest.mark.extras
@pytest.mark.skipif(NO_CLOUD, reason="needs wordcloud: see `make test-extras`")
def test_what_the_font_cannot_write_is_counted() -> None:
    """The library's own font has no Chinese or Japanese characters."""
    part = word_cloud(KEYWORDS)
    assert part.found is not None
    assert (part.found.words, part.found.left_out) == (3, {"no_glyphs": 1})
    alone = word_cloud([KEYWORDS[-1]])
    assert (alone.found, alone.reason) == (None, NotAnalyzed.NO_GLYPHS)


@pytest.mark.extras
@pytest.mark.skipif(NO_CLOUD, reason="needs wordcloud: see `make test-extras`")
def test_the_same_words_give_the_same_image() -> None:
    """Nothing but the seed and the words decides the layout."""
    assert word_cloud(KEYWORDS, seed=3) == word_cloud(KEYWORDS, seed=3)


@pytest.mark.extras
@pytest.mark.skipif(NO_CLOUD, reason="needs wordcloud: see `make test-extras`")
def test_a_font_that_is_none_is_named(tmp_path: Path) -> None:
    """A missing file, and one that holds something else."""
    (tmp_path / "none.ttf").write_bytes(b"no font")
    for name in ("none.ttf", "gone.ttf"):
        part = word_cloud(KEYWORDS, font=tmp_path / name)
        assert (part.found, part.reason) == (None, NotAnalyzed.BAD_FONT)
        assert name in str(part.detail)
        assert str(tmp_path) not in str(part.detail)


@pytest.mark.extras
@pytest.mark.skipif(NO_CLOUD, reason="needs wordcloud: see `make test-extras`")
def test_a_text_in_place_of_a_keyword_finds_no_space() -> None:
    """No size is tried for it; the others are shown."""
    part = word_cloud([*KEYWORDS[:1], _keyword("x" * 100_000, 3)])
    assert part.found is not None
    assert (part.found.words, part.found.left_out) == (1, {"no_space": 1})
    assert word_cloud([_keyword("x" * 101, 3)]).reason is NotAnalyzed.NO_SPACE


@pytest.mark.extras
@pytest.mark.skipif(NO_CLOUD, reason="needs wordcloud: see `make test-extras`")
def test_a_control_character_that_a_font_knows_is_not_written(tmp_path: Path) -> None:
    """XML can hold none: the keyword is counted, and the image is still one."""
    font = _with_control_characters(tmp_path / "own.ttf")
    part = word_cloud([*KEYWORDS[:1], _keyword("a\x0b\x00b", 3)], font=font)
    assert part.found is not None
    assert part.found.left_out == {"no_glyphs": 1}


def _with_control_characters(path: Path) -> Path:
    """The library's own font, with images for characters that have none."""
    import wordcloud
    from fontTools.ttLib import TTFont

    with TTFont(Path(wordcloud.__file__).with_name("DroidSansMono.ttf")) as font:
        for table in font["cmap"].tables:
            table.cmap |= {0: "a", 11: "a"}
        font.save(path)
    return path


def test_without_keywords_there_is_a_reason() -> None:
    """No failure has no image."""
    assert word_cloud(None).reason is NotAnalyzed.NO_COMMENTS


@pytest.mark.skipif(not NO_CLOUD, reason="wordcloud is installed here")
def test_without_the_package_the_part_says_so() -> None:
    """What to install; nothing is raised."""
    assert word_cloud(KEYWORDS).reason is NotAnalyzed.MISSING_EXTRA
