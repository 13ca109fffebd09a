"""What people say failed, how they work around it, when they post, and what a build lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

from echo_hf.curate.feedback import normalize_keyword
from echo_hf.report.analysis import feedback
from echo_hf.report.analysis.feedback import PostTimes
from echo_hf.report.analysis.result import FailureKeyword, NotAnalyzed
from echo_hf.tables import POSTS

TIMES = PostTimes(
    {
        "u1": datetime(2026, 3, 31, 23, 59, tzinfo=UTC),
        "u2": datetime(2026, 4, 1, tzinfo=UTC),
        "u3": datetime(2026, 4, 2, tzinfo=UTC),
    }
)
Said = tuple[str, str | None, str | None]


def sample(
    name: str,
    said: Sequence[Said] = (),
    *,
    prompt: str | None = "draw a cat",
    task: str | None = "edit",
    kind: str | None = "task",
) -> dict[str, Any]:
    return {
        "id": name,
        "prompt": prompt,
        "task": task,
        "kind": kind,
        "post_urls": [f"https://example.org/{name}"],
        "community_feedback": [
            {"post_url": url, "feedback": f"about {url}", "verdict": verdict, "keyword": keyword}
            for url, verdict, keyword in said
        ],
    }


SAMPLES = [
    sample("a", [("u2", "failure", "colour cast"), ("u1", "mixed", "Color-casts")]),
    sample("b", [("u3", "failure", "colour cast"), ("u9", "failure", "extra fingers")]),
    sample("c", [("u5", "success", None), ("u6", "failure", None), ("u7", None, None)]),
    sample("d", [("u8", "success", "colour cast")]),
]


SPELLINGS = [
    ("colour cast", "Color Cast", "color-casts", "cast, colour", "COLOUR_CAST", "ｃｏｌｏｒ cast"),
    ("extra fingers", "extra finger", "fingers (extra)"),
    ("can't spell", "cant spell", "can’t spell"),
    ("文字错误", "文字错误。"),
    *(("wrong hands",), ("wrong hair",), ("glass",), ("glas",), ("texture",), ("text",)),
]


def test_only_spellings_of_the_same_words_have_one_form() -> None:
    """Nothing is merged because it is merely similar."""
    forms = [{normalize_keyword(one) for one in some} for some in SPELLINGS]
    assert [len(some) for some in forms] == [1] * len(SPELLINGS)
    assert len(set.union(*forms)) == len(SPELLINGS)


def test_the_time_in_an_identifier_is_what_x_itself_says(test_data: Path) -> None:
    lines = (test_data / "posts/x_api_v2/flat.jsonl").read_text("utf-8").splitlines()
    posts = [json.loads(line) for line in lines]
    assert len(posts) == 100
    for post in posts:
        found = feedback.parse_post_time(f"https://x.com/i/status/{post['id']}")
        assert found is not None
        assert abs((found - datetime.fromisoformat(post["created_at"])).total_seconds()) < 1
    for other in (None, "", "https://x.com/i/status/20", "https://bsky.app/profile/a/post/3k"):
        assert feedback.parse_post_time(other) is None


def test_a_table_is_asked_first() -> None:
    moment = datetime(2026, 3, 2, 12, tzinfo=UTC)
    url, other = "https://example.org/1", "https://x.com/i/status/1212092628029698048"
    rows = [{"url": url, "timestamp": moment}, {"url": other, "timestamp": None}]
    schema = pa.schema([POSTS.schema.field(name) for name in ("url", "timestamp")])
    times = PostTimes.from_table(pa.Table.from_pylist(rows, schema))
    assert times.get(url) == moment
    assert f"{times.get(other):%Y-%m-%d %H:%M:%S}" == "2019-12-31 19:26:16"
    assert times.get("https://example.org/2") is None


def test_spellings_are_merged_and_counted() -> None:
    found = feedback.analyze_failures(SAMPLES, TIMES, examples=2).found
    first, second = found.keywords
    assert (first.keyword, first.comments, first.samples) == ("colour cast", 3, 2)
    assert first.spellings == {"colour cast": 2, "Color-casts": 1}
    assert (second.keyword, second.comments) == ("extra fingers", 1)
    assert found.verdicts == {"failure": 4, "mixed": 1, "success": 2, "unasked": 1}
    # A minute before April, in UTC, is March.
    assert (first.by_month, second.by_month) == ({"2026-03": 1, "2026-04": 2}, {})
    # Sample a has the two earliest, and the second place goes to sample b.
    assert [one.post_url for one in first.examples] == ["u1", "u3"]
    assert first.examples[0].time == "2026-03-31T23:59:00+00:00"

    part = feedback.analyze_failures(
        [sample("a", [("u1", "success", None), ("u2", None, None)])], TIMES
    )
    assert (part.found, part.reason) == (None, NotAnalyzed.NO_COMMENTS)


ORDERED: list[Said] = [
    ("u3", "success", None),
    ("u1", "success", None),
    ("u2", "failure", "wrong maze"),
    ("u2", "mixed", None),
]
UNTIMED: list[Said] = [
    ("u2", "failure", "blur"),
    ("u1", "mixed", "hands"),
    ("u1", "failure", "blur"),
    ("u2", "success", None),
]


@pytest.mark.parametrize(
    ("said", "times", "found"),
    [
        (ORDERED, TIMES, [("u3", ("wrong maze",))]),
        (UNTIMED, PostTimes(), [("u1", ("blur",)), ("u2", ("blur", "hands"))]),
    ],
    ids=["by time", "as they stand"],
)
def test_a_success_after_anothers_failure_may_be_a_workaround(
    said: list[Said], times: PostTimes, found: list[tuple[str, tuple[str, ...]]]
) -> None:
    told = feedback.interaction([sample("a", said)], times).found
    assert [(one.comment.post_url, one.failed) for one in told.workarounds] == found


def test_probes_are_the_samples_of_that_kind() -> None:
    """Words that a release leaves out stay out."""
    bare = sample("d", [("u1", "failure", "blur"), ("u2", "success", None)], prompt=None)
    for comment in bare["community_feedback"]:
        comment["feedback"] = None
    probe_given = sample("a", kind="probe", prompt="draw  yourself")
    others = [sample("b"), sample("c", kind=None), {**bare, "kind": "probe"}]
    found = feedback.interaction([probe_given, *others], TIMES).found
    probe, silent = found.probes
    assert (probe.id, probe.prompt, probe.comments) == ("a", "draw yourself", 0)
    assert probe.post.post_url == "https://example.org/a"
    assert (silent.prompt, found.workarounds[0].comment.text) == (None, None)


def test_days_are_those_of_utc_and_count_from_the_release() -> None:
    """Ten in the evening in New York is the next day; a day before the release is -1."""
    new_york = timezone(timedelta(hours=-5))
    rows = [
        (datetime(2026, 3, 1, 22, tzinfo=new_york), ["lumen", "lumen", "l2"]),
        (datetime(2026, 3, 2, 23, 59, 59, tzinfo=UTC), []),
        (datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC), None),
        (None, ["lumen"]),
    ]
    schema = pa.schema([POSTS.schema.field(name) for name in ("timestamp", "keywords")])
    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    found = feedback.count_activity(pa.Table.from_pylist(named, schema), date(2026, 3, 2)).found
    days = {day.date: (day.since_release, day.posts) for day in found.days}
    assert days == {"2026-03-01": (-1, 1), "2026-03-02": (0, 2)}
    assert (found.keywords, found.undated) == ({"lumen": 2, "l2": 1}, 1)
    assert feedback.count_activity(None, date(2026, 3, 2)).reason is NotAnalyzed.NO_POSTS


def test_posts_of_samples_stand_for_those_that_nobody_has() -> None:
    """Each once; of X, whose addresses tell the time (2026-03-02 in UTC), also without a time."""
    address = "https://x.com/i/status/2028440179307446272"
    day = datetime(2026, 3, 4, tzinfo=UTC)
    of_b = {"post_urls": ["b", "c"], "timestamp": day, "keywords": ["lumen"]}
    none = {"timestamp": None, "keywords": None}
    samples = [{"post_urls": [address], **none}, of_b, of_b, {"post_urls": None, **none}]
    posts = feedback.build_sample_posts(samples)
    assert posts["url"].to_pylist() == [address, "b"]
    part = feedback.count_activity(posts, date(2026, 3, 2), feedback.SAMPLE_POSTS)
    days = [(one.date, one.posts) for one in part.found.days]
    assert days == [("2026-03-02", 1), ("2026-03-04", 1)]
    assert part.definition["counted"].startswith("the primary posts of the samples")
    assert feedback.build_sample_posts([{"post_urls": ["b"], **none}]) is None


def _manifest(**stages: dict[str, Any]) -> Any:
    rows = [SimpleNamespace(stage=stage, counts=counts) for stage, counts in stages.items()]
    return cast("Any", SimpleNamespace(funnel=rows))


def test_each_stage_has_what_it_read_kept_and_lost() -> None:
    counts = {"rows_in": 10, "kept": 6, "noted": {"duplicate": 5}, "tally": {"5": 6}}
    counts |= {"rejected": {"not_relevant": 3}, "quarantined": {"engine_error": 1}}
    collect = {"rows_in": 12, "kept": 10, "rejected": {"not_json": 2}}
    other = {"rows_in": 1, "kept": 1}
    steps = feedback.read_funnel(
        _manifest(collect=collect, divination=other, relevance=counts)
    ).found
    assert steps is not None
    first, second = steps
    found = (first.stage, first.rows_in, first.kept, first.lost)
    assert found == ("collect", 12, 10, {"not_json": 2})
    assert second.lost == {"not_relevant": 3, "engine_error": 1}
    assert (second.reads, second.makes) == ("posts", "posts")
    for manifest in (None, _manifest(divination=other)):
        part = feedback.read_funnel(manifest)
        assert (part.found, part.reason) == (None, NotAnalyzed.NO_RUN)


NO_CLOUD = find_spec("wordcloud") is None
HOSTILE = "<script>alert(1)</script>"
needs_cloud = pytest.mark.skipif(NO_CLOUD, reason="needs wordcloud: see `make test-extras`")


def _keyword(name: str, comments: int) -> FailureKeyword:
    known = {"samples": 1, "spellings": {name: comments}, "by_month": {}, "examples": ()}
    return FailureKeyword(keyword=name, comments=comments, **known)


KEYWORDS = [
    _keyword("colour cast", 9),
    _keyword(HOSTILE, 4),
    _keyword("\"' onload=x &amp;", 2),
    _keyword("顔が違う", 1),
]


@pytest.mark.extras
@needs_cloud
def test_words_are_text_and_nothing_else() -> None:
    part = feedback.draw_word_cloud(KEYWORDS, seed=3)
    assert part == feedback.draw_word_cloud(KEYWORDS, seed=3)
    root = ET.fromstring(part.found.svg)  # noqa: S314 - our own
    assert {element.tag for element in root.iter()} == {
        f"{{{feedback.SVG}}}{tag}" for tag in ("svg", "text")
    }
    shown = {str(element.text): float(element.get("font-size", 0)) for element in root}
    assert set(shown) == {"colour cast", HOSTILE, "\"' onload=x &amp;"}
    assert max(shown, key=lambda word: shown[word]) == "colour cast"
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
    assert (part.found.words, part.found.left_out) == (3, {"no_glyphs": 1})
    assert feedback.draw_word_cloud([KEYWORDS[-1]]).reason is NotAnalyzed.NO_GLYPHS


@pytest.mark.extras
@needs_cloud
def test_what_cannot_be_laid_out_says_why(tmp_path: Path) -> None:
    """No font, a text in place of a keyword, and a sign that the font knows and nobody sees."""
    (tmp_path / "none.ttf").write_bytes(b"no font")
    for name in ("none.ttf", "gone.ttf"):
        part = feedback.draw_word_cloud(KEYWORDS, font=tmp_path / name)
        assert (part.found, part.reason) == (None, NotAnalyzed.BAD_FONT)
        assert name in str(part.detail)
        assert str(tmp_path) not in str(part.detail)
    others = [_keyword("x" * 100_000, 3), _keyword("a\u200bb", 3)]
    part = feedback.draw_word_cloud([*KEYWORDS[:1], *others])
    assert (part.found.words, part.found.left_out) == (1, {"no_glyphs": 1, "no_space": 1})
    assert feedback.draw_word_cloud([_keyword("x" * 101, 3)]).reason is NotAnalyzed.NO_SPACE


def test_without_keywords_or_the_package_there_is_a_reason() -> None:
    assert feedback.draw_word_cloud(None).reason is NotAnalyzed.NO_COMMENTS
    if NO_CLOUD:
        assert feedback.draw_word_cloud(KEYWORDS).reason is NotAnalyzed.MISSING_EXTRA
