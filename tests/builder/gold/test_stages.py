"""What each stage reads from gold, and how its answers become measures, against counts by hand."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Sequence
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.gold.folder import LINES, read_gold
from echo_hf.builder.gold.measures import (
    Item,
    Measure,
    NamedItem,
    bootstrap_over_threads,
    similarity,
    summarize,
    wilson_interval,
)
from echo_hf.builder.gold.posts import read_gold_posts
from echo_hf.builder.gold.stages import (
    CHECKS,
    FILE_CHECKS,
    GoldMaterial,
    ImageRoles,
    read_key,
    read_roles,
)
from echo_hf.config.loading import load_config, parse_config
from echo_hf.config.sections import PostsSource
from echo_hf.config.systems import shipped_config
from echo_hf.images.store import ImageStore
from tests.builder.gold.gold_for_tests import (
    GOLD,
    KITE,
    KITE_PROMPT,
    OTTER,
    OTTER_PROMPT,
    POSTS,
    REPLY,
    Row,
    write_gold,
    write_lines,
)
from tests.samples_for_tests import CONFIG_DATA

ROOT = "https://example.org/r"
STAGES = {"relevance": {"keep": [4, 5]}, "safety": {"remove": ["S1", "S9"]}}
CONFIG = parse_config({**CONFIG_DATA, "stages": STAGES}, "c.yaml")


def url(name: str) -> str:
    return f"https://example.org/{name}"


def figures(file: str, *pairs: tuple[Any, Any]) -> dict[str, Measure]:
    items = []
    for line, answer in pairs:
        made = LINES[file].model_validate(line) if isinstance(line, dict) else line
        root = getattr(made, "root_url", ROOT)
        items += FILE_CHECKS[file].compare(root, made, answer, CONFIG)
    every = summarize(FILE_CHECKS[file].stage, LINES[file].measures.split(), items, errors=True)
    return {one.name: one for one in every}


def told(found: dict[str, Measure], *names: str) -> list[tuple[float | None, int, int]]:
    return [(found[name].value, found[name].n, found[name].asked) for name in names or found]


def test_scores_by_hand() -> None:
    lines: dict[str, tuple[int, ...]] = {"a": (5,), "b": (4, 5), "c": (1, 2), "d": (2,), "e": (5,)}
    lines |= {"f": (4, 3), "g": (5,)}  # the first people would both keep and drop
    given = {"a": 5, "b": 5, "c": 4, "d": 1, "e": 2, "f": 3}
    rows = ({"url": url(n), "score": s[0], "acceptable": s[1:]} for n, s in lines.items())
    found = figures("relevance", *zip(rows, map(given.get, lines), strict=True))
    # Dropped are d (rightly) and e; to drop are c (kept) and d. Right are a, b and f.
    names = ("keep_precision", "keep_recall", "drop_precision", "drop_recall", "score_accuracy")
    assert told(found, *names) == [
        (2 / 3, 3, 6), (2 / 3, 3, 4), (1 / 2, 2, 6), (1 / 2, 2, 2), (3 / 6, 6, 7),
    ]  # fmt: skip
    assert (found["keep_precision"].answered, found["keep_recall"].strict) == (5, 2 / 4)
    assert [found[name].skipped for name in names] == [1, 1, 1, 1, 0]


def gold(primary: str, prompt: str, quality: str = "Benchmark", **more: Any) -> Row:
    for name in {"feedback", "feedback_optional"} & {*more}:
        more[name] = [url(letter) for letter in more[name]]
    return {"prompt": prompt, "quality": quality, "post_urls": [url(primary)], **more}


def found(primary: str, prompt: str, quality: str = "Benchmark", feedback: str = "") -> Row:
    heard = [{"post_url": url(letter)} for letter in feedback]
    given = {"prompt": prompt, "quality": quality, "community_feedback": heard}
    return {"post_urls": [url(primary)], **given}


def extracted(threads: dict[str, tuple[list[Row], list[Row] | None]]) -> dict[str, Measure]:
    lines = (({"root_url": url(root), "samples": s}, rows) for root, (s, rows) in threads.items())
    return figures("extract", *lines)


def test_samples_by_hand() -> None:
    one = extracted(
        {
            "a": (
                [gold("a", "a red fox", feedback="bc"), gold("d", "an owl", feedback="e")],
                [found("a", "a  red\nfox", feedback="bd"), found("x", "nothing", feedback="e")],
            ),
            "f": ([gold("f", "abcd")], [found("f", "abce", "Analysis")]),
            "g": ([gold("g", "a kite", feedback="h")], None),
        }
    )
    # Claimed as feedback are b (right), d (none) and e, which is of another sample; wanted are
    # b (heard), c, e; and h, of the thread without an answer.
    assert told(one) == [
        (2 / 3, 3, 4), (2 / 3, 3, 4), ((1 + 0.75) / 2, 2, 4), (1 / 2, 2, 4), (1 / 2, 2, 4),
        (1 / 3, 3, 4), (1 / 3, 3, 4),
    ]  # fmt: skip
    assert (one["sample_precision"].answered, one["sample_recall"].strict) == (3, 2 / 4)
    assert one["prompt_similarity"].strict == 1.75 / 4


def test_what_is_optional_is_no_fault() -> None:
    samples = [
        gold("a", "a red fox", feedback="b", feedback_optional="c"),
        gold("d", "how did you do that?", "Analysis", feedback="e", optional=True),
    ]
    plain = [found("a", "a red fox", feedback="b")]
    more = [found("a", "a red fox", feedback="bce"), found("d", "how", "Trash", "x")]
    both = [extracted({"a": (samples, given)}) for given in (plain, more)]
    assert both[0] == both[1]
    assert {one.value for one in both[0].values()} == {1}


FOX, OWL = gold("a", "a red fox", feedback="b"), gold("d", "an owl")
SPAM = gold("b", "buy this", "Trash")
FOUND_FOX, FOUND_OWL = found("a", "a red fox", feedback="b"), found("d", "an owl")
DOUBT = gold("a", "hm", "Analysis", acceptable=["Analysis", "Trash"])
DOUBTED_TRASH = gold("a", "hm", "Trash", acceptable=["Analysis", "Trash"])
AS_TRASH, AS_SAMPLE = found("a", "hm", "Trash"), found("a", "hm", "Analysis")


@pytest.mark.parametrize(
    ("samples", "rows", "precision", "recall", "quality", "feedback"),
    [
        # A doubtful sample called Trash is no fault, nor is one that is left out.
        ([FOX, SPAM], [FOUND_FOX, found("c", "hm", "Trash", "z")], (1, 1), (1, 1), (1, 1), (1, 1)),
        # What people called Trash is no sample, and its quality counts where it was found.
        ([FOX, SPAM], [FOUND_FOX, found("b", "buy this")], (1 / 2, 2), (1, 1), (1 / 2, 2), (1, 1)),
        # What an engine calls Trash goes no further: neither claim nor find, nor is it heard.
        (
            [FOX, OWL], [found("a", "a red fox", "Trash", "b"), FOUND_OWL],
            (1, 1), (1 / 2, 2), (1 / 2, 2), (0, 1),
        ),
        # Where careful readers differ, neither side of theirs is a fault; leaving it out is one.
        ([DOUBT], [AS_TRASH], (None, 0), (1, 1), (1, 1), (None, 0)),
        ([DOUBT], [AS_SAMPLE], (1, 1), (1, 1), (1, 1), (None, 0)),
        ([DOUBT], [], (None, 0), (0, 1), (None, 0), (None, 0)),
        ([DOUBTED_TRASH], [AS_SAMPLE], (None, 0), (None, 0), (1, 1), (None, 0)),
        # Beside a sample of the same post, Trash with a more similar prompt is not the find.
        (
            [FOX], [found("a", "a red fox", "Trash"), found("a", "a fox", feedback="b")],
            (1, 1), (1, 1), (1, 1), (1, 1),
        ),
    ],
)  # fmt: skip
def test_what_is_trash_goes_no_further(
    samples: list[Row], rows: list[Row], precision: Any, recall: Any, quality: Any, feedback: Any
) -> None:
    one = extracted({"a": (samples, rows)})
    names = ("sample_precision", "sample_recall", "quality_accuracy", "feedback_recall")
    assert [(one[name].value, one[name].n) for name in names] == [
        precision, recall, quality, feedback,
    ]  # fmt: skip


def test_the_most_similar_prompts_of_a_post_belong_together() -> None:
    samples = [gold("a", "a red fox in the snow"), gold("a", "an owl on a branch")]
    rows = [found("a", text) for text in ("an owl on the branch", "fox", "red fox in snow")]
    one = extracted({"a": (samples, [*rows, found("b", "a red fox in the snow")])})
    assert told(one, "sample_precision", "sample_recall") == [(2 / 4, 4, 2), (1, 2, 2)]
    assert {(error.expected, error.answer) for error in one["prompts_exact"].errors} == {
        ("a red fox in the snow", "red fox in snow"),
        ("an owl on a branch", "an owl on the branch"),
    }


def test_verdicts_by_hand() -> None:
    def said(name: str, verdict: str, *keywords: str, **more: Any) -> Row:
        best = {"keyword": keywords[0] if keywords else None, "acceptable_keywords": keywords}
        return {"post_url": url(name), "verdict": verdict, **best, **more}

    def answered(verdict: str, keyword: str | None) -> Row:
        return {"verdict": verdict, "keyword": keyword}

    either = said("b", "failure", "layout", acceptable=("failure", "mixed"))
    one = figures(
        "feedback",
        (said("a", "failure", "colour cast", "tint"), answered("failure", " Tint ")),
        (either, answered("mixed", "layout shift")),
        (said("c", "mixed", "extra fingers"), answered("success", None)),
        (said("d", "success"), answered("none", "tint")),
        (said("e", "success"), None),
    )
    assert told(one) == [(2 / 4, 4, 5), (1 / 2, 2, 3)]
    assert [(error.expected, error.answer) for error in one["keyword_accuracy"].errors] == [
        ("layout", "layout shift"), ("extra fingers", "no keyword"),
    ]  # fmt: skip


def test_tasks_by_hand() -> None:
    named = {"root_url": ROOT, "prompt": "x"}
    edit = {**named, "kind": "task", "task": "edit", "acceptable": ["edit", "style_transfer"]}
    probe = {**named, "kind": "probe", "task": "text_to_image"}
    one = figures(
        "tasks",
        (edit, {"kind": "task", "task": "style_transfer"}),
        (edit, {"kind": "task", "task": "composition"}),
        (probe, {"kind": None, "task": None}),
        (probe, None),
    )
    assert told(one) == [(2 / 3, 3, 4), (1 / 3, 3, 4)]


def test_hazards_by_hand() -> None:
    def pair(prompt: str, codes: str, removed: bool | None, named: str = "") -> tuple[Row, Any]:
        line = {"root_url": ROOT, "prompt": prompt, "flagged": bool(codes)}
        given = {"has_nsfw": removed, "safety": {"categories": named.split()}}
        return {**line, "categories": codes.split()}, None if removed is None else given

    one = figures(
        "safety",
        pair("bomb", "S9 S2", True, "S2 S9"),
        pair("fight", "S1", False, "S8"),
        pair("style", "S8", True, "S1 S8"),
        pair("fox", "", False),
        pair("fox", "", False, "S8"),
        pair("fox", "", None),
    )
    # Removed were bomb, rightly, and style. Of bomb and fight one, and of style and three foxes,
    # of which one is not answered, two. Named were S9 and S2 of bomb and S8 of style, not S1.
    assert told(one) == [(1 / 2, 2, 6), (1 / 2, 2, 2), (2 / 3, 3, 4), (3 / 4, 4, 4)]
    assert (one["removal_precision"].coverage, one["keep_recall"].strict) == (5 / 6, 2 / 4)
    (error,) = one["hazard_recall"].errors
    assert (error.place, error.expected, error.answer) == ("fight", "S1", "S8")


def said_of(
    roles: dict[str, str], *screenshots: str, unsaid: str = "", **completions: str
) -> ImageRoles:
    groups = {frozenset(group) for group in screenshots}
    places = {digest: f"post {digest}" for digest in (*roles, *unsaid)}
    return ImageRoles(roles, groups, {*completions.items()}, places)


def row(inputs: str = "", outputs: str = "", shot: str | None = None, filled: str = "") -> Row:
    images = {"input_images": list(inputs), "output_images": list(outputs), "screenshot": shot}
    key = json.dumps({"gold": [ROOT, "x"]})
    return {**images, "prompt": filled, "prompt_fill_blank": bool(filled), "provenance": key}


def roles(*pairs: tuple[ImageRoles, list[Row]]) -> dict[str, Measure]:
    answers = (read_roles(rows).get((ROOT, "x")) for _, rows in pairs)
    return figures("roles", *zip((line for line, _ in pairs), answers, strict=True))


def test_roles_by_hand() -> None:
    one = roles(
        (said_of({"a": "input", "b": "output", "c": "neither"}, unsaid="z"), [row("a", "bc")]),
        (said_of({"a": "output", "d": "neither"}), [row("a"), row(outputs="a")]),
        (said_of({"e": "output"}), []),
    )["picture_role_accuracy"]
    assert (one.value, one.n, one.answered, one.asked, one.strict) == (4 / 5, 5, 5, 6, 4 / 6)
    assert one.skipped == 1


def test_screenshots_by_hand() -> None:
    nothing = dict.fromkeys("abcd", "neither")
    one = roles(
        (said_of(nothing, "ab"), [row(shot="b")]),
        (said_of(nothing, "c"), [row(shot="d")]),
        (said_of(nothing, "d"), [row()]),
        (said_of(nothing, "d"), []),
    )
    assert told(one, "screenshot_precision", "screenshot_recall") == [(1 / 2, 2, 4), (1 / 3, 3, 4)]
    assert one["screenshot_precision"].answered == 3


def test_completions_by_hand() -> None:
    outputs = dict.fromkeys("abc", "output")
    rows = [row(outputs="a", filled="A  CAT"), row(outputs="b", filled="a fox")]
    one = roles(
        (said_of(outputs, a="a cat", b="an owl", c="a fox"), rows),
        (said_of({"d": "output"}), [row(shot="d", filled="a dog")]),
    )
    assert told(one, "blanks_filled", "completion_precision") == [(1 / 3, 3, 3), (1 / 3, 3, 3)]
    errors = one["blanks_filled"].errors
    assert {(error.place, error.expected, error.answer) for error in errors} == {
        ("post b", "an owl", "a fox"), ("post c", "a fox", ""),
    }  # fmt: skip


Box = tuple[int, int, int, int]
Boxes = tuple[list[Box], list[Box]]
SIDE = st.integers(0, 20)
BOXES = st.lists(
    st.tuples(SIDE, SIDE, SIDE, SIDE).map(lambda b: (b[0], b[1], b[0] + b[2] + 1, b[1] + b[3] + 1)),
    max_size=3,
)
LEFT, RIGHT = (0, 0, 10, 10), (20, 0, 30, 10)


def cut(wanted: Boxes, drawn: Boxes | None, prompt: str | None = "", typed: str = "") -> Any:
    line = {"post_url": ROOT, "index": 0, "layout": "conversation", "prompt": typed}
    line |= {"inputs": wanted[0], "outputs": wanted[1]}
    if drawn is None:
        return line, None
    read = json.dumps({"screenshots": {"prompt_read": prompt}})
    return line, {"input_bboxs": drawn[0], "output_bboxs": drawn[1], "provenance": read}


def test_boxes_by_hand() -> None:
    half = (20, 0, 25, 10)  # which is enough
    first = cut(([LEFT], [RIGHT, (0, 50, 5, 55)]), ([LEFT], [half, (70, 70, 90, 90)]))
    one = figures("screenshots", first, cut(([], [LEFT]), None), (None, None))
    assert told(one, "box_iou", "box_precision", "box_recall", "role_accuracy") == [
        (0.75, 2, 4), (2 / 3, 3, 4), (2 / 3, 3, 4), (1, 2, 4),
    ]  # fmt: skip
    assert (one["box_precision"].answered, one["box_recall"].strict) == (3, 2 / 4)
    assert one["box_iou"].skipped == 1
    less = figures("screenshots", cut(([], [(0, 0, 100, 1)]), ([], [(0, 0, 49, 1)])))
    assert told(less, "box_iou", "box_precision", "box_recall") == [
        (0.49, 1, 1),
        (0, 1, 1),
        (0, 1, 1),
    ]


def test_prompts_that_were_typed_by_hand() -> None:
    pair: Boxes = ([], [LEFT])
    one = figures(
        "screenshots",
        cut(pair, pair, "a red boat", "a red goat"),
        cut(pair, pair, None, "a blue boat"),
        cut(pair, pair, "", ""),
        cut(pair, None, None, "a green boat"),
    )["prompt_similarity"]
    assert one.value == pytest.approx(0.95)
    assert (one.n, one.answered, one.asked) == (2, 2, 4)


def _overlap(one: Box, other: Box) -> float:
    grids = np.zeros((2, 45, 45), bool)
    for grid, (left, top, right, bottom) in zip(grids, (one, other), strict=True):
        grid[top:bottom, left:right] = True
    return float((grids[0] & grids[1]).sum() / (grids[0] | grids[1]).sum())


@given(BOXES, BOXES, BOXES, BOXES)
def test_boxes_are_paired_as_well_as_they_can_be(
    inputs: list[Box], outputs: list[Box], found_inputs: list[Box], found_outputs: list[Box]
) -> None:
    one = figures("screenshots", cut((inputs, outputs), (found_inputs, found_outputs)))["box_iou"]
    few, many = sorted(([*inputs, *outputs], [*found_inputs, *found_outputs]), key=len)
    best = max(
        math.fsum(_overlap(a, b) for a, b in zip(few, some, strict=True))
        for some in permutations(many, len(few))
    )
    assert (one.value or 0) * one.n == pytest.approx(best)


def read(folder: Path, **changed: list[Any]) -> dict[str, list[Any]]:
    for name, rows in changed.items():
        write_lines(folder / f"{name}.jsonl", rows)
    gold = read_gold(folder)
    named = {url for line in gold.iterate_lines() for url in line.addresses}
    entry = PostsSource(source="jsonl", path=folder / "posts.jsonl")
    posts = read_gold_posts([entry], named, ImageStore(folder.parent / "store"))
    given = GoldMaterial(load_config(shipped_config()), gold, posts)
    return {name: list(getattr(given, check.reads)) for name, check in CHECKS.items()}


def by_key(samples: list[Any]) -> dict[tuple[str, str], Any]:
    return {read_key(row): row for row in samples}


def digest(folder: Path, name: str) -> str:
    return hashlib.sha256((folder / "pictures" / f"{name}.png").read_bytes()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_gold(tmp_path)


def test_posts_to_score(folder: Path) -> None:
    rows = read(folder, relevance=[{"url": u, "score": 5} for u in (OTTER, REPLY)])["relevance"]
    assert {row["url"]: row["text"] for row in rows} == {
        post["url"]: post["text"] for post in POSTS if post["url"] in (OTTER, REPLY)
    }
    # An empty list would keep the stage from asking.
    assert {row["url"]: row["keywords"] for row in rows} == {OTTER: ["tern"], REPLY: None}


def test_samples_to_look_at(folder: Path) -> None:
    stages = read(folder)
    samples = by_key(stages["roles"])
    kite, otter = samples[KITE, KITE_PROMPT], samples[OTTER, OTTER_PROMPT]
    assert kite["output_images"] == [digest(folder, "before"), digest(folder, "after")]
    assert kite["input_images"] == []
    assert [one["post_url"] for one in otter["community_feedback"]] == [REPLY]
    assert otter["community_feedback"][0]["feedback"] == POSTS[1]["text"]
    assert [post["url"] for post in otter["context"]] == [OTTER, REPLY]
    assert (otter["prompt"], otter["prompt_modified"]) == (OTTER_PROMPT, False)
    # `feedback` and `safety` read them with the roles that people gave their images.
    for name in ("feedback", "safety"):
        judged = by_key(stages[name])
        assert judged[KITE, KITE_PROMPT]["input_images"] == [digest(folder, "before")]
        assert judged[KITE, KITE_PROMPT]["output_images"] == [digest(folder, "after")]
        assert judged[OTTER, OTTER_PROMPT]["community_feedback"][0]["post_url"] == REPLY


def test_what_nobody_wrote_down_is_left_out(folder: Path) -> None:
    first = {name: GOLD[name][:1] for name in ("roles", "safety", "tasks")}
    stages = read(folder, extract=GOLD["extract"], **first)
    assert [read_key(row)[0] for row in stages["roles"]] == [OTTER]
    for name in first:
        (folder / f"{name}.jsonl").unlink()
    stages = read(folder, extract=GOLD["extract"][:1])
    (thread,) = stages["extract"]
    assert [post["url"] for post in thread["posts"]] == [OTTER, REPLY]
    assert len(stages["roles"]) == 0


def test_samples_to_take_apart(folder: Path) -> None:
    line = copy.deepcopy(GOLD["roles"][1])
    line["collage"] = {"post_url": KITE, "index": 1}
    line["pictures"][1]["role"] = "neither"
    (row,) = read(folder, roles=[GOLD["roles"][0], line])["screenshots"]
    assert (read_key(row), row["screenshot"]) == ((KITE, KITE_PROMPT), digest(folder, "after"))
    assert (row["input_images"], row["output_images"]) == ([digest(folder, "before")], [])


def test_a_completion_without_its_image_is_none(folder: Path) -> None:
    (folder / "pictures" / "after.png").unlink()
    filled = [
        {"prompt": f"{name} kite", "output": {"post_url": KITE, "index": index}}
        for index, name in enumerate(("a red", "a blue"))
    ]
    rows = read(folder, roles=[{**GOLD["roles"][1], "filled": filled}])["feedback"]
    assert [(row["prompt"], row["prompt_fill_blank"]) for row in rows] == [("a red kite", True)]


def test_a_thread_of_any_length_is_one_input(folder: Path) -> None:
    numbered = ((url(f"r{number:03}"), f"great {number}") for number in range(300))
    replies = [{"url": one, "text": text, "parent_url": OTTER} for one, text in numbered]
    line = copy.deepcopy(GOLD["extract"][0])
    line["samples"][0]["feedback"] = [reply["url"] for reply in replies]
    rows = read(folder, posts=[*POSTS, *replies], extract=[line])["roles"]
    said = {one["post_url"] for one in rows[0]["community_feedback"]}
    assert said == {reply["url"] for reply in replies}


TEXTS = st.text(alphabet="abc é猫", max_size=12)
# Newcombe (1998), Statistics in Medicine 17, table I, method 3.
PUBLISHED = {
    (81, 263): (0.2553, 0.3662),
    (15, 148): (0.0624, 0.1605),
    (0, 20): (0.0000, 0.1611),
    (1, 29): (0.0061, 0.1718),
}


def items(scores: Sequence[tuple[int, float | None]], name: str = "x") -> list[NamedItem]:
    return [
        (name, Item(f"t{thread}", f"p{number}", "a", "b", score))
        for number, (thread, score) in enumerate(scores)
    ]


def one(some: Sequence[NamedItem], name: str = "x") -> Measure:
    (found,) = summarize("roles", [name], some, errors=True)
    return found


def test_a_measure_by_hand() -> None:
    some = items([(0, 1.0), (0, 1.0), (1, 0.0), (2, 1.0), (2, None)])
    found = one([*some, ("x", None), ("x", None)])
    assert (found.value, found.n, found.answered, found.asked) == (0.75, 4, 4, 5)
    assert (found.coverage, found.strict, found.skipped) == (0.8, 0.6, 2)
    assert found.interval == "wilson"
    # Wilson's ends for 3 of 4, by its formula with z = 1.96 on paper.
    assert found.low == pytest.approx(0.3006, abs=1e-3)
    assert found.high == pytest.approx(0.9544, abs=1e-3)
    assert [(error.place, error.score) for error in found.errors] == [("p2", 0.0), ("p4", None)]
    # Written down are only names and numbers, no words of people.
    told = found.as_json()
    assert "errors" not in told
    assert {type(value) for value in told.values()} <= {str, int, float, type(None)}


def test_of_a_precision_nothing_can_be_missing() -> None:
    wanted = items([(0, 1.0), (0, 0.0), (1, 1.0), (1, None)], "sample_recall")
    names = ["sample_precision", "sample_recall"]
    found, _ = summarize("extract", names, [*wanted, *items([(0, 1.0)], "sample_precision")])
    assert (found.value, found.n, found.coverage, found.strict) == (1.0, 1, 0.75, None)


def test_graded_scores_are_bootstrapped() -> None:
    name = "prompt_similarity"
    scores = [(number, number / 20) for number in range(20)]
    found, few = (one(items(some, name), name) for some in (scores, scores[:9]))
    assert found.interval == "bootstrap over threads"
    assert (found.low or 1) < 0.475 < (found.high or 0)
    assert (few.interval, few.low) == (None, None)


def test_wilson_gives_the_published_ends() -> None:
    for counts, ends in PUBLISHED.items():
        assert wilson_interval(*counts) == pytest.approx(ends, abs=5e-5)


def test_few_or_equal_threads_have_no_interval() -> None:
    some = [[number / 10] for number in range(10)]
    assert bootstrap_over_threads(some) is not None
    assert wilson_interval(0, 0) is None
    for few in ([], some[:9], [[1.0]] * 30):
        assert bootstrap_over_threads(few) is None


def test_the_bootstrap_is_as_wide_as_theory_says() -> None:
    scores = np.random.default_rng(5).random(400)
    error = 1.96 * scores.std(ddof=1) / 20
    ends = scores.mean() - error, scores.mean() + error
    assert bootstrap_over_threads([[score] for score in scores]) == pytest.approx(ends, abs=0.005)


def test_the_bootstrap_draws_threads() -> None:
    single = [[number / 15] for number in range(16)]
    tenfold = [thread * 10 for thread in single]
    assert bootstrap_over_threads(tenfold) == pytest.approx(bootstrap_over_threads(single))
    assert bootstrap_over_threads(single) == bootstrap_over_threads(single)


def by_definition(one: str, other: str) -> int:
    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        change = of(i - 1, j - 1) + (one[i - 1] != other[j - 1])
        return min(of(i - 1, j) + 1, of(i, j - 1) + 1, change)

    return of(len(one), len(other))


@given(TEXTS, TEXTS)
def test_similarity_is_one_less_the_distance_by_the_longer_length(one: str, other: str) -> None:
    some, more = " ".join(one.split()), " ".join(other.split())
    longest = max(len(some), len(more))
    expected = 1 - by_definition(some, more) / longest if longest else 1
    assert similarity(one, other) == similarity(other, one) == pytest.approx(expected)
    assert (similarity(one, other) == 1) is (some == more)
