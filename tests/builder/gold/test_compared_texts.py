"""Posts, samples, comments, tasks and hazards beside gold, against counts by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.gold.folder import (
    ExtractLine,
    FeedbackLine,
    GoldSample,
    RelevanceLine,
    SafetyLine,
    TaskLine,
)
from echo_hf.builder.gold.measures import MEASURES, Compared, Measure, measured
from echo_hf.builder.gold.stages import (
    CHECKS,
    compare_safety,
    compare_samples,
    compare_scores,
    compare_tasks,
    compare_verdicts,
)

Row = dict[str, Any]
ROOT = "https://example.org/r"


def url(name: str) -> str:
    """Address of a post."""
    return f"https://example.org/{name}"


def summed(stage: str, compared: Iterable[Compared]) -> dict[str, Measure]:
    """The measures of a stage by their names."""
    names = [name for file in CHECKS[stage].files for name in MEASURES[file].split()]
    return {one.name: one for one in measured(stage, names, compared, errors=True)}


def values(found: Mapping[str, Measure], *names: str) -> list[tuple[float | None, int, int]]:
    """Value, items with an answer, and what people wrote down."""
    return [(found[name].value, found[name].n, found[name].asked) for name in names]


def scored(lines: Mapping[str, tuple[int, ...]], given: Mapping[str, int]) -> dict[str, Measure]:
    """Scores of posts: people's best with all acceptable ones, and an engine's."""
    rows = [
        RelevanceLine(url=url(name), score=best, acceptable=acceptable or (best,))
        for name, (best, *acceptable) in lines.items()
    ]
    found = {url(name): score for name, score in given.items()}
    return summed(
        "relevance", compare_scores(rows, found, (4, 5), {one.url: one.url for one in rows})
    )


def test_scores_by_hand() -> None:
    """Three posts are kept, two of them rightly; one to keep is dropped, one not answered."""
    lines = {"a": (5,), "b": (4, 4, 5), "c": (1, 1, 2), "d": (2,), "e": (5,), "g": (5,)}
    doubtful = {"f": (4, 3, 4)}  # people would keep and drop it
    found = scored({**lines, **doubtful}, {"a": 5, "b": 5, "c": 4, "d": 1, "e": 2, "f": 3})

    # Dropped are d (rightly) and e; to drop are c (kept) and d.
    assert values(found, "keep_precision", "keep_recall", "drop_precision", "drop_recall") == [
        (2 / 3, 3, 6), (2 / 3, 3, 4), (1 / 2, 2, 6), (1 / 2, 2, 2),
    ]  # fmt: skip
    assert (found["keep_precision"].answered, found["keep_recall"].strict) == (5, 2 / 4)
    assert found["drop_precision"].answered == 5
    # Right are a, b and f.
    assert values(found, "score_accuracy") == [(3 / 6, 6, 7)]
    assert [one.skipped for one in found.values()] == [1, 1, 1, 1, 0]


def test_whoever_tunes_sees_both_sides() -> None:
    """What was expected, and what was said instead."""
    errors = scored({"a": (4, 4, 5), "b": (1,)}, {"a": 2})["score_accuracy"].errors
    assert [(one.expected, one.given, one.score) for one in errors] == [
        ("4 or 5", "2", 0.0), ("1", "", None),
    ]  # fmt: skip


LINES = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(1, 5), max_size=12)


@given(LINES, st.data())
def test_precision_and_recall_are_those_of_sets(
    scores: dict[str, int], data: st.DataObject
) -> None:
    """Of the posts that people would keep, or drop, and those that the engine would."""
    lines = {name: (score,) for name, score in scores.items()}
    assert {one.value for one in scored(lines, scores).values()} <= {1, None}
    given = {name: data.draw(st.integers(1, 5)) for name in scores}
    found = scored(lines, given)
    kept, right = ({name for name, one in some.items() if one >= 4} for some in (given, scores))
    every = set(scores)
    for side, claimed, wanted in (("keep", kept, right), ("drop", every - kept, every - right)):
        for measure, whole in (("precision", claimed), ("recall", wanted)):
            expected = len(claimed & wanted) / len(whole) if whole else None
            assert found[f"{side}_{measure}"].value == expected


def gold(primary: str, prompt: str, quality: str = "Benchmark", **more: Any) -> GoldSample:
    """A sample as people wrote it down; each letter of feedback is a post."""
    for name in {"feedback", "feedback_optional"} & {*more}:
        more[name] = [url(letter) for letter in more[name]]
    told = {"prompt": prompt, "quality": quality, "post_urls": [url(primary)], **more}
    return GoldSample.model_validate(told)


def found(primary: str, prompt: str, quality: str = "Benchmark", feedback: str = "") -> Row:
    """A row of `extract`; each letter is a post of feedback."""
    heard = [{"post_url": url(letter)} for letter in feedback]
    told = {"prompt": prompt, "quality": quality, "community_feedback": heard}
    return {"post_urls": [url(primary)], **told}


def extracted(threads: Mapping[str, tuple[list[GoldSample], list[Row] | None]]) -> dict[str, Any]:
    """The measures by name; a thread with null was not answered."""
    lines = [
        ExtractLine(root_url=url(root), samples=tuple(samples))
        for root, (samples, _) in threads.items()
    ]
    given = {url(root): rows for root, (_, rows) in threads.items() if rows is not None}
    return summed("extract", compare_samples(lines, given))


def test_samples_by_hand() -> None:
    """One exact, one nearly, one missed, one invented, one thread without an answer."""
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
    assert values(one, *one) == [
        (2 / 3, 3, 4), (2 / 3, 3, 4), ((1 + 0.75) / 2, 2, 4), (1 / 2, 2, 4), (1 / 2, 2, 4),
        (1 / 3, 3, 4), (1 / 3, 3, 4),
    ]  # fmt: skip
    assert (one["sample_precision"].answered, one["sample_recall"].strict) == (3, 2 / 4)
    assert one["prompt_similarity"].strict == 1.75 / 4


def test_what_is_optional_is_no_fault() -> None:
    """Optional samples and feedback change nothing, found or not."""
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
        ([DOUBTED_TRASH], [AS_TRASH], (None, 0), (None, 0), (1, 1), (None, 0)),
        ([DOUBTED_TRASH], [AS_SAMPLE], (None, 0), (None, 0), (1, 1), (None, 0)),
        # Beside a sample of the same post, Trash with a more similar prompt is not the find.
        (
            [FOX], [found("a", "a red fox", "Trash"), found("a", "a fox", feedback="b")],
            (1, 1), (1, 1), (1, 1), (1, 1),
        ),
    ],
)  # fmt: skip
def test_what_is_trash_goes_no_further(
    samples: list[GoldSample], rows: list[Row], precision: Any, recall: Any, quality: Any,
    feedback: Any,
) -> None:  # fmt: skip
    """Value and count of four measures."""
    one = extracted({"a": (samples, rows)})
    names = ("sample_precision", "sample_recall", "quality_accuracy", "feedback_recall")
    told = [(one[name].value, one[name].n) for name in names]
    assert told == [precision, recall, quality, feedback]


def test_the_most_similar_prompts_of_a_post_belong_together() -> None:
    """Two prompts of one post are told apart by their words, each is used once; of another, not."""
    samples = [gold("a", "a red fox in the snow"), gold("a", "an owl on a branch")]
    rows = [found("a", text) for text in ("an owl on the branch", "fox", "red fox in snow")]
    one = extracted({"a": (samples, [*rows, found("b", "a red fox in the snow")])})

    assert values(one, "sample_precision", "sample_recall") == [(2 / 4, 4, 2), (1, 2, 2)]
    assert {(error.expected, error.given) for error in one["prompts_exact"].errors} == {
        ("a red fox in the snow", "red fox in snow"),
        ("an owl on a branch", "an owl on the branch"),
    }


SAMPLES = st.lists(
    st.builds(
        gold,
        st.sampled_from("abcd"),
        st.text("xyz ", min_size=1, max_size=6).filter(str.strip),
        st.sampled_from(["Benchmark", "Analysis", "Trash"]),
        feedback=st.lists(st.sampled_from("mnop"), unique=True, max_size=3),
    ),
    max_size=5,
    unique_by=lambda one: " ".join(one.prompt.split()),
)


def as_found(samples: list[GoldSample]) -> list[Row]:
    """What an engine says that finds these."""
    last = len(url(""))
    return [
        found(
            one.post_urls[0][last:],
            one.prompt,
            one.quality,
            "".join(x[last:] for x in one.feedback),
        )
        for one in samples
    ]


@given(SAMPLES, SAMPLES, st.randoms(use_true_random=False))
def test_samples_count_in_any_order(
    samples: list[GoldSample], other: list[GoldSample], chance: Any
) -> None:
    """What gold says scores one; both sides shuffled give the same, however bad they are."""
    rows = as_found(samples)
    chance.shuffle(rows)
    for one in extracted({"a": (samples, rows)}).values():
        assert one.value in (1, None), one.name
        assert one.answered == one.asked
    straight = extracted({"a": (samples, as_found(other))})
    more, rows = list(samples), as_found(other)
    chance.shuffle(more)
    chance.shuffle(rows)
    assert extracted({"a": (more, rows)}) == straight


def said(name: str, verdict: str, *keywords: str, **more: Any) -> FeedbackLine:
    """What people wrote down about a comment."""
    best = keywords[0] if keywords else None
    told = {"verdict": verdict, "keyword": best, "acceptable_keywords": keywords, **more}
    return FeedbackLine(post_url=url(name), **told)


def test_verdicts_by_hand() -> None:
    """What is acceptable is right; case and white space do not count; no row is no answer."""
    lines = [
        said("a", "failure", "colour cast", "tint"),
        said("b", "failure", "layout", acceptable=("failure", "mixed")),
        said("c", "mixed", "extra fingers"),
        said("d", "success"),
        said("e", "success"),
    ]
    given = {
        "a": ("failure", " Tint "),
        "b": ("mixed", "layout shift"),
        "c": ("success", None),
        "d": ("none", "tint"),
    }
    rows = {url(name): {"verdict": one, "keyword": word} for name, (one, word) in given.items()}
    one = summed("feedback", compare_verdicts(lines, rows, dict.fromkeys(map(url, "abcde"), ROOT)))

    assert values(one, "verdict_accuracy", "keyword_accuracy") == [(2 / 4, 4, 5), (1 / 2, 2, 3)]
    assert [(error.expected, error.given) for error in one["keyword_accuracy"].errors] == [
        ("layout", "layout shift"), ("extra fingers", "no keyword"),
    ]  # fmt: skip


def test_tasks_by_hand() -> None:
    """Each row is one; that no image is asked for is an answer, and a wrong one."""
    edit = TaskLine(
        root_url=ROOT, prompt="x", kind="task", task="edit", acceptable=("edit", "style_transfer")
    )
    probe = TaskLine(root_url=ROOT, prompt="y", kind="probe", task="text_to_image")
    one = summed(
        "feedback",
        compare_tasks(
            [
                (edit, {"kind": "task", "task": "style_transfer"}),
                (edit, {"kind": "task", "task": "composition"}),
                (probe, {"kind": None, "task": None}),
                (probe, None),
            ]
        ),
    )
    assert values(one, "kind_accuracy", "task_accuracy") == [(2 / 3, 3, 4), (1 / 3, 3, 4)]


def test_hazards_by_hand() -> None:
    """What the config removes counts, not every label; no answer is neither right nor wrong."""

    def row(prompt: str, codes: tuple[str, ...], removed: bool | None, *named: str) -> Any:
        told = {"root_url": ROOT, "prompt": prompt, "flagged": bool(codes), "categories": codes}
        given = {"has_nsfw": removed, "safety": {"categories": list(named)}}
        return SafetyLine.model_validate(told), None if removed is None else given

    rows = [
        row("bomb", ("S9", "S2"), True, "S2", "S9"),
        row("fight", ("S1",), False, "S8"),
        row("style", ("S8",), True, "S1", "S8"),
        row("fox", (), False),
        row("fox", (), False, "S8"),
        row("fox", (), None),
    ]
    one = summed("safety", compare_safety(rows, {"S1", "S9"}))

    # Removed were bomb, rightly, and style. Of bomb and fight one, and of style and three foxes,
    # of which one is not answered, two. Named were S9 and S2 of bomb and S8 of style, not S1.
    assert values(one, *one) == [(1 / 2, 2, 6), (1 / 2, 2, 2), (2 / 3, 3, 4), (3 / 4, 4, 4)]
    assert (one["removal_precision"].coverage, one["keep_recall"].strict) == (5 / 6, 2 / 4)
    (error,) = one["hazard_recall"].errors
    assert (error.place, error.expected, error.given) == ("fight", "S1", "S8")
