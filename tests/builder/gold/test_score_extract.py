"""Samples of threads, against counts by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.gold.inputs import FoundSample
from echo_hf.builder.gold.lines import ExtractLine, GoldSample
from echo_hf.builder.gold.measures import Measure, measured
from echo_hf.builder.gold.sample_scores import matched, score_extract


def url(name: str) -> str:
    """Address of a post."""
    return f"https://example.org/{name}"


def gold(primary: str, prompt: str, quality: str = "Benchmark", **more: Any) -> GoldSample:
    """A sample as people wrote it down."""
    values = {name: tuple(map(url, given)) for name, given in more.items() if name != "optional"}
    return GoldSample(
        prompt=prompt,
        quality=quality,
        post_urls=(url(primary),),
        optional=more.get("optional", False),
        **values,
    )


def found(primary: str, prompt: str, quality: str = "Benchmark", feedback: str = "") -> FoundSample:
    """A sample as an engine found it; each letter is a post of feedback."""
    return FoundSample(url(primary), prompt, quality, tuple(map(url, feedback)))


def measures(
    threads: Mapping[str, tuple[list[GoldSample], list[FoundSample] | None]],
) -> dict[str, Measure]:
    """The measures by name; a thread with null was not answered."""
    lines = [
        ExtractLine(root_url=url(root), samples=tuple(samples))
        for root, (samples, _) in threads.items()
    ]
    given = {url(root): samples for root, (_, samples) in threads.items() if samples is not None}
    return {one.name: measured("extract", one) for one in score_extract(lines, given)}


def test_counts_by_hand() -> None:
    """One exact, one nearly, one missed, one invented, one thread without an answer."""
    one = measures(
        {
            "a": (
                [gold("a", "a red fox", feedback="bc"), gold("d", "an owl", feedback="e")],
                [found("a", "a  red\nfox", feedback="bd"), found("x", "nothing", feedback="e")],
            ),
            "f": ([gold("f", "abcd")], [found("f", "abce", "Analysis")]),
            "g": ([gold("g", "a kite", feedback="h")], None),
        }
    )

    assert (one["sample_precision"].value, one["sample_precision"].n) == (2 / 3, 3)
    assert (one["sample_precision"].answered, one["sample_precision"].asked) == (3, 4)
    assert (one["sample_recall"].value, one["sample_recall"].strict) == (2 / 3, 2 / 4)
    assert (one["prompt_similarity"].value, one["prompt_similarity"].n) == ((1 + 0.75) / 2, 2)
    assert one["prompt_similarity"].strict == 1.75 / 4
    assert (one["prompts_exact"].value, one["prompts_exact"].answered) == (1 / 2, 2)
    assert one["quality_accuracy"].value == 1 / 2
    # Claimed are b (right), d (no feedback) and e, which is of another sample.
    assert (one["feedback_precision"].value, one["feedback_precision"].n) == (1 / 3, 3)
    # Wanted are b (heard), c, e; and h, of the thread without an answer.
    assert (one["feedback_recall"].value, one["feedback_recall"].n) == (1 / 3, 3)
    assert one["feedback_recall"].asked == 4


def test_what_is_optional_is_no_fault() -> None:
    """Optional samples and feedback change nothing, found or not."""
    samples = [
        gold("a", "a red fox", feedback="b", feedback_optional="c"),
        gold("d", "how did you do that?", "Analysis", feedback="e", optional=True),
    ]
    plain = [found("a", "a red fox", feedback="b")]
    more = [found("a", "a red fox", feedback="bce"), found("d", "how", "Trash", "x")]
    both = [measures({"a": (samples, given)}) for given in (plain, more)]

    assert both[0] == both[1]
    assert {one.value for one in both[0].values()} == {1}


def test_what_is_trash_goes_no_further() -> None:
    """A doubtful sample called Trash is no fault, nor is one left out; its quality counts."""
    samples = [gold("a", "a red fox"), gold("b", "buy this", "Trash")]
    alone = [found("a", "a red fox"), found("c", "hm", "Trash", "z")]
    left_out = measures({"a": (samples, alone)})
    kept = measures({"a": (samples, [found("a", "a red fox"), found("b", "buy this")])})

    assert {one.value for one in left_out.values()} == {1, None}
    assert (kept["quality_accuracy"].value, kept["quality_accuracy"].n) == (1 / 2, 2)
    # What people called Trash is no sample.
    assert (kept["sample_precision"].value, kept["sample_precision"].n) == (1 / 2, 2)
    assert (kept["sample_recall"].value, kept["sample_recall"].n) == (1, 1)


def test_a_sample_called_trash_is_missed() -> None:
    """It goes no further, so it is neither a claim nor a find, and its feedback is not heard."""
    samples = [gold("a", "a red fox", feedback="b"), gold("d", "an owl")]
    one = measures({"a": (samples, [found("a", "a red fox", "Trash", "b"), found("d", "an owl")])})

    assert (one["sample_recall"].value, one["sample_recall"].n) == (1 / 2, 2)
    assert (one["sample_precision"].value, one["sample_precision"].n) == (1, 1)
    assert (one["prompts_exact"].value, one["prompts_exact"].n) == (1, 1)
    assert (one["quality_accuracy"].value, one["quality_accuracy"].n) == (1 / 2, 2)
    assert (one["feedback_recall"].value, one["feedback_precision"].n) == (0, 0)


def test_trash_is_right_where_it_is_acceptable() -> None:
    """Where careful readers differ, neither side of theirs is a fault; leaving it out is one."""
    analysis = GoldSample(
        prompt="hm", quality="Analysis", acceptable=("Analysis", "Trash"), post_urls=(url("a"),)
    )
    trash = analysis.model_copy(update={"quality": "Trash"})
    as_trash, as_sample = found("a", "hm", "Trash"), found("a", "hm", "Analysis")

    for answer in (as_trash, as_sample):
        one = measures({"a": ([analysis], [answer])})
        assert (one["sample_recall"].value, one["quality_accuracy"].value) == (1, 1)
    assert measures({"a": ([analysis], [])})["sample_recall"].value == 0
    for answer in (as_trash, as_sample):
        one = measures({"a": ([trash], [answer])})
        assert (one["sample_precision"].n, one["sample_recall"].n) == (0, 0)


def test_what_is_called_trash_takes_no_samples_place() -> None:
    """Beside a sample of the same post, Trash with a more similar prompt is not the find."""
    given = [found("a", "a red fox", "Trash"), found("a", "a fox")]
    one = measures({"a": ([gold("a", "a red fox")], given)})

    assert (one["sample_recall"].value, one["sample_precision"].value) == (1, 1)
    assert one["prompts_exact"].value == 0


def test_the_most_similar_prompts_of_a_post_belong_together() -> None:
    """Two prompts of one post are told apart by their words; each is used once."""
    fox, owl = gold("a", "a red fox in the snow"), gold("a", "an owl on a branch")
    near_owl, near_fox = found("a", "an owl on the branch"), found("a", "red fox in snow")
    third = found("a", "fox")
    pairs = set(matched([fox, owl], [near_owl, third, near_fox]))

    assert pairs == {(fox, near_fox), (owl, near_owl)}
    assert not list(matched([fox], [found("b", "a red fox in the snow")]))


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


@given(st.lists(SAMPLES, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_right_samples_are_right_in_any_order(threads: list[list[GoldSample]], chance: Any) -> None:
    """What gold says, in any order, scores one on everything that there is."""
    right = {}
    for number, samples in enumerate(threads):
        given = [
            FoundSample(one.post_urls[0], one.prompt, one.quality, one.feedback) for one in samples
        ]
        chance.shuffle(given)
        right[f"t{number}"] = (samples, given)
    for one in measures(right).values():
        assert one.value in (1, None), one.name
        assert one.answered == one.asked


@given(SAMPLES, SAMPLES, st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(
    samples: list[GoldSample], other: list[GoldSample], chance: Any
) -> None:
    """Both sides shuffled give the same measures, however bad they are."""
    given = [FoundSample(one.post_urls[0], one.prompt, one.quality, one.feedback) for one in other]
    straight = measures({"a": (samples, given)})
    shuffled = [list(samples), list(given)]
    for one in shuffled:
        chance.shuffle(one)

    assert measures({"a": (shuffled[0], shuffled[1])}) == straight  # type: ignore[dict-item]
