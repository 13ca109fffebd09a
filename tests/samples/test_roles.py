"""Telling inputs from outputs, whatever a model says."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from itertools import cycle, permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from echo_hf.engines.base import ImageRef, Text
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.reasons import Failed, Notice
from echo_hf.samples.roles import Roles
from echo_hf.samples.shown_images import RequestPart, RolesAnswer, SampleImage, parts_of
from echo_hf.samples.tasks import Assigned, Task
from tests.samples_for_tests import (
    ROLES_SAMPLES,
    TARGET,
    TEMPLATE,
    digest,
    image,
    kept,
    noted,
    post,
    sample,
    samples,
    table,
    url,
)

STORE = ImageStore(Path("pictures"))
STAGE = Roles(TARGET, STORE)
FAILURE = Failure(Failed.CUT, "length", "ff")
CONTEXT = [post(0, -1, "prompt", "ab"), post(1, 0, "so good")]
SAMPLE = sample(CONTEXT, [0], [1])


def answer(*said: dict[str, Any]) -> BaseModel:
    return RolesAnswer.model_validate({"samples": said})


def one(inputs: list[int], outputs: list[int], **values: Any) -> dict[str, Any]:
    plain = {"inputs": inputs, "outputs": outputs, "posts": [], "may_show_minor": False}
    return {**plain, **values}


def made(*given_: tuple[dict[str, Any], list[Any]], most: int = 16) -> list[dict[str, Any]]:
    answers = [[FAILURE if one is None else answer(*one) for one in said] for _, said in given_]
    stage = Roles(TARGET, STORE, most)
    return list(stage.finish(table(*(row for row, _ in given_)), answers).to_pylist())


def test_inputs_and_outputs_are_told_apart() -> None:
    """By hand: the first image went in, the second one came out."""
    (row,) = made((SAMPLE, [[one([1], [2])]]))

    assert (row["input_images"], row["output_images"]) == ([digest("a")], [digest("b")])
    assert (row["id"], row["quality"], row["_parent"]) == ("sample", "Benchmark", ["sample"])
    assert row["context"] == CONTEXT
    assert json.loads(row["provenance"])["roles"]["digest"] == STAGE.digest()


def test_a_sample_that_may_show_a_minor_is_to_be_reviewed() -> None:
    context = [post(0, -1, TEMPLATE, "a"), post(1, 0, "mine", "bc")]
    row = sample(context, [0, 1], prompt=TEMPLATE)
    cat, dog = ([{"placeholder": "[PET]", "value": pet}] for pet in ("cat", "dog"))
    said = [
        one([1], [2], prompt_fill_blank=cat),
        one([], [3], prompt_fill_blank=dog, may_show_minor=True),
    ]

    assert [(one["output_images"], one["review"]) for one in kept(made((row, [said])))] == [
        ([digest("b")], []),
        ([digest("c")], ["may_show_minor"]),
    ]


def test_an_image_keeps_its_mark_in_another_task() -> None:
    said = [one([1], [2]), one([], [2], may_show_minor=True)]
    (row,) = kept(made((SAMPLE, [said])))

    assert (row["output_images"], row["review"]) == ([digest("b")], ["may_show_minor"])


def test_a_template_that_nothing_completed_is_for_analysis() -> None:
    prompt = "a shadow box of <subject> in [COLOUR]"
    for row, answers in (
        ({**SAMPLE, "prompt": prompt}, [[one([], [1, 2])]]),
        (sample([post(0, -1, prompt)], prompt=prompt), []),
    ):
        rows = made((row, answers))

        assert [done["quality"] for done in kept(rows)] == ["Analysis"]
        assert noted(rows) == [("template_left", "<subject>"), ("template_left", "[COLOUR]")]


def test_a_blank_that_a_completion_leaves_is_noted() -> None:
    cat = one([], [1], prompt_fill_blank=[{"placeholder": "[PET]", "value": "cat"}])
    dog = one([], [2], prompt_fill_blank=[{"placeholder": "[PET]", "value": "dog"}])
    rows = made(({**SAMPLE, "prompt": TEMPLATE}, [[cat, dog]]))

    assert [row["quality"] for row in kept(rows)] == ["Analysis", "Analysis"]
    assert noted(rows) == [("blank_left", "[PLACE]")]


def test_our_mark_of_what_was_left_out_is_no_blank() -> None:
    mark = "[... 900 characters left out]"
    whole = made(({**SAMPLE, "prompt": f"a fox in {mark}"}, [[one([1], [2])]]))
    filled = one([], [1, 2], prompt_fill_blank=[{"placeholder": "[PET]", "value": f"cat {mark}"}])
    rows = made(({**SAMPLE, "prompt": "a [PET] asleep"}, [[filled]]))

    assert [(row["quality"], noted(whole)) for row in kept(whole)] == [("Analysis", [])]
    assert {row["quality"] for row in kept(rows)} == {"Analysis"}
    assert {reason for reason, _ in noted(rows)} == {"shortened_prompt"}


def test_images_that_are_all_neither_show_no_task() -> None:
    rows = made((SAMPLE, [[one([], [])]]))

    assert [row["quality"] for row in kept(rows)] == ["Analysis"]
    assert noted(rows) == [("neither", digest("a")), ("neither", digest("b")), ("no_task", None)]


def test_swapped_roles_change_no_name() -> None:
    row = sample([post(0, -1, "prompt", "abcd")])
    names = [
        [done["id"] for done in kept(made((row, [[one([1], [2]), further]])))]
        for further in (one([3], [4]), one([4], [3]))
    ]

    assert len(names[0]) == 2
    assert names[0] == names[1]


@pytest.mark.parametrize("others", ["", "ab"])
def test_an_image_that_could_not_be_had_may_be_an_input(others: str) -> None:
    lost = {**image(None), "url": "https://p.example/gone"}
    shown = [*(image(name) for name in others), lost]
    row = sample([{**CONTEXT[0], "pictures": shown}, post(1, 0, "so good")])
    rows = made((row, [[one([1], [2])]] if others else []))

    assert [done["quality"] for done in kept(rows)] == ["Analysis"]
    assert noted(rows) == [("picture_not_there", "https://p.example/gone")]
    (trash,) = kept(made(({**row, "quality": "Trash"}, [])))
    assert trash["quality"] == "Trash"


def test_a_failed_part_keeps_the_sample_in_quarantine() -> None:
    (row,) = made((SAMPLE, [[one([1], [2])], None]), most=2)
    assert (row["_status"], row["_reason"], row["_request"]) == ("quarantined", "cut", "ff")


def test_a_request_shows_each_image_after_its_number() -> None:
    ((request,),) = STAGE.requests(table(SAMPLE))
    system, user = request.messages
    data, *images = user.parts
    files = [STORE.path(digest(name)) for name in "ab"]

    assert system.parts == (Text(STAGE.prompt.text),)
    assert images == [
        Text("Picture 1:"),
        ImageRef(digest("a")),
        Text("Picture 2:"),
        ImageRef(digest("b")),
    ]
    assert [one.file for one in images if isinstance(one, ImageRef)] == files
    assert [one["file"] for one in request.inputs["pictures"]] == files
    assert isinstance(data, Text)
    assert json.loads(data.text.split("\n")[1]) == {
        name: request.inputs[name] for name in ("prompt", "placeholders", "posts")
    } | {
        "pictures": [
            {name: one[name] for name in ("number", "post", "alt_text")}
            for one in request.inputs["pictures"]
        ]
    }
    assert request.sources == (url(0),)


def test_the_counts_by_hand() -> None:
    filled = {**one([], [2]), "prompt_fill_blank": [{"placeholder": "[PET]", "value": "cat"}]}
    rows = [
        (SAMPLE, [[one([1], [2])]]),
        (SAMPLE, [[one([1], [], conversation=2)]]),
        ({**SAMPLE, "prompt": TEMPLATE}, [[filled]]),
        ({**SAMPLE, "quality": "Trash"}, []),
    ]
    stage = Roles(TARGET, STORE)
    answers = [[answer(*said) for said in given_] for _, given_ in rows]
    done = stage.finish(table(*(row for row, _ in rows)), answers)
    tally = stage.tally(done.filter(pa.compute.equal(done["_status"], "kept")))

    assert tally == {"with_inputs": 2, "filled": 1, "screenshots": 1}
    assert Roles.headline({"roles": StageStats("roles", 4, 4, tally=tally)}) == (
        "2 of 4 samples have input images; 1 completions of templates, 1 screenshots"
    )


# Of a sample with more parts than answers the first part's answer is given again.
ANSWERS = st.lists(ROLES_SAMPLES, min_size=1, max_size=3)


def _case(row: dict[str, Any], answers: list[Any], most: int) -> tuple[dict[str, Any], list[Any]]:
    parts = parts_of(row, most) if row["quality"] != "Trash" else []
    return row, [said for _, said in zip(parts, cycle(answers), strict=False)]


def _answered(row: dict[str, Any], answers: list[Any], most: int) -> list[dict[str, Any]]:
    return made(_case(row, answers, most), most=most)


@given(samples(), ANSWERS, st.integers(2, 16))
def test_everything_is_accounted_for(row: dict[str, Any], answers: list[Any], most: int) -> None:
    rows = _answered(row, answers, most)
    done = kept(rows)
    looked_at = row["quality"] != "Trash" and bool(row["output_images"])

    assert all(one["_parent"] == [row["id"]] for one in rows)
    assert len({one["id"] for one in done}) == len(done) >= 1
    _words_have_one_row(row, done)
    for one in done:
        text = json.dumps([one["prompt"], one["input_images"]], ensure_ascii=False)
        assert not looked_at or one["sample_digest"] in (
            hashlib.sha256(text.encode()).hexdigest(),
            row["sample_digest"] if ("no_task", None) in noted(rows) else None,
        )
        assert one["prompt_fill_blank"] == (one["prompt"] != row["prompt"])
    _who_may_be_a_minor_is_to_be_reviewed(row, answers, most, done)
    if looked_at:
        _images_have_one_role(row, rows)


def _who_may_be_a_minor_is_to_be_reviewed(
    row: dict[str, Any], answers: list[Any], most: int, done: list[dict[str, Any]]
) -> None:
    marked: set[str] = set()
    for part, said in zip(parts_of(row, most), cycle(answers), strict=False):
        shown = {number: one.sha256 for number, one in enumerate(part.images, 1)}
        for one in said if row["quality"] != "Trash" else ():
            keys = [*one["inputs"], *one["outputs"], one["conversation"], one["collage"]]
            named = {shown[key] for key in keys if key in shown}
            marked |= (
                (named or set(shown.values())) if one["may_show_minor"] is not False else set()
            )
    for one in done:
        has = {*one["input_images"], *one["output_images"], one["screenshot"]}
        assert one["review"] == (["may_show_minor"] if has & marked else [])


def _words_have_one_row(row: dict[str, Any], done: list[dict[str, Any]]) -> None:
    said = Counter(one["post_url"] for of in done for one in of["community_feedback"])
    assert said == Counter(one["post_url"] for one in row["community_feedback"])
    posts = [address for one in done for address in one["post_urls"]]
    assert set(posts) == set(row["post_urls"])
    for one in done:
        assert one["post_urls"][0] == row["post_urls"][0]
        assert len(set(one["post_urls"])) == len(one["post_urls"])


def _images_have_one_role(row: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    done = kept(rows)
    inputs = Counter(name for one in done for name in one["input_images"])
    shared = {name for one in done if one["prompt_fill_blank"] for name in one["input_images"]}
    shown = Counter(name for one in done for name in one["output_images"])
    shown += Counter(one["screenshot"] for one in done if one["screenshot"])
    left = Counter(what for reason, what in noted(rows) if reason in ("neither", "not_completed"))

    assert all(times == 1 for name, times in inputs.items() if name not in shared)
    assert all(times == 1 for times in (shown | left).values())
    assert not inputs & shown
    assert not (inputs | shown) & left
    assert set(inputs | shown | left) == set(row["output_images"])
    shots = [one["screenshot"] for one in done if one["screenshot"]]
    assert sorted(what or "" for why, what in noted(rows) if why == "not_parsed") == sorted(shots)


@given(samples(), ANSWERS, st.integers(2, 6), st.randoms(use_true_random=False))
def test_names_come_from_sources_alone(
    row: dict[str, Any], answers: list[Any], most: int, random: Any
) -> None:
    worded = json.loads(json.dumps(answers).replace('"cat"', '"kitten"').replace("dog", "hound"))
    turned = [random.sample(said, len(said)) for said in worded]
    rows = [kept(_answered(row, said, most)) for said in (answers, worded, turned)]
    columns = ("id", "input_images", "output_images", "screenshot", "prompt_fill_blank")
    first, *others = ([{name: one[name] for name in columns} for one in done] for done in rows)

    assert others == [first, first]


COMPLETIONS = st.lists(st.sampled_from(["cat", "dog", "owl"]), min_size=2, max_size=11)


@given(COMPLETIONS, st.integers(2, 6), st.booleans())
def test_several_parts_are_one_where_their_answers_agree(
    pets: list[str], most: int, with_input: bool
) -> None:
    context = [
        post(0, -1, TEMPLATE, "i" if with_input else ""),
        *(post(n, 0, f"my {pet}") for n, pet in enumerate(pets, 1)),
    ]
    for number, one_of in enumerate(context[1:], 1):
        one_of["pictures"] = [image(f"o{number}")]
    row = sample(context, range(len(context)), range(1, len(context)), prompt=TEMPLATE)
    pet_of = {digest(f"o{number}"): pet for number, pet in enumerate(pets, 1)}

    rows = []
    for most_pictures in (16, most):
        parts = parts_of(row, most_pictures)
        assert len(parts) == 1 or most_pictures == most
        rows.append(made((row, [_truth(part, pet_of) for part in parts]), most=most_pictures))
    for done in kept(rows[0]) + kept(rows[1]):
        done["provenance"] = json.loads(done["provenance"])["roles"]["blanks"]
    assert rows[0] == rows[1]
    assert len(kept(rows[0])) == len(set(pets))


def _truth(part: Any, pet_of: dict[str, str]) -> list[dict[str, Any]]:
    inputs = [n for n, shown in enumerate(part.images, 1) if shown.sha256 not in pet_of]
    pets: dict[str, list[int]] = {}
    for number, shown in enumerate(part.images, 1):
        if shown.sha256 in pet_of:
            pets.setdefault(pet_of[shown.sha256], []).append(number)
    return [
        one(
            inputs,
            outputs,
            posts=[part.posts.index(part.images[n - 1].post) for n in outputs],
            prompt_fill_blank=[{"placeholder": "[PET]", "value": pet}],
        )
        for pet, outputs in pets.items()
    ]


PLAIN = "a fox in the snow"
CAT = [{"placeholder": "[PET]", "value": "cat"}, {"placeholder": "[PLACE]", "value": "sea"}]
DOG = [{"placeholder": "[PET]", "value": "dog"}, {"placeholder": "[PLACE]", "value": "sea"}]
IMAGES = "abcdefghij"


def part(images: str = IMAGES, own: Sequence[int] = (0, 1, 3)) -> RequestPart:
    return RequestPart(
        (0, 1, 2, 3),
        frozenset(own),
        tuple(SampleImage(told, n % 4, None) for n, told in enumerate(images)),
    )


def told(inputs: str = "", outputs: str = "", **values: Any) -> dict[str, Any]:
    numbers = {name: IMAGES.index(name) + 1 for name in IMAGES}
    shots = {
        name: numbers[values.pop(name)] for name in ("conversation", "collage") if name in values
    }
    return {
        "inputs": [numbers[name] for name in inputs],
        "outputs": [numbers[name] for name in outputs],
        "posts": [],
        **values,
        **shots,
    }


def assigned(*several: dict[str, Any], prompt: str = PLAIN) -> tuple[list[Task], list[Any]]:
    made = Assigned(prompt, IMAGES)
    made.add(RolesAnswer.model_validate({"samples": several}), part())
    tasks = made.finish()
    return tasks, [told for told in made.findings if told[0] is not Notice.NEITHER]


def shown(tasks: Sequence[Task]) -> list[tuple[str, ...]]:
    return [("".join(t.inputs), "".join(t.outputs), t.screenshot or "") for t in tasks]


class TestRoles:
    def test_an_ordinary_answer(self) -> None:
        made = Assigned(PLAIN, "abcd")
        answer = {"inputs": [3, 1], "outputs": [2], "posts": [3, 0]}
        made.add(RolesAnswer.model_validate({"samples": [answer]}), part("abcd"))
        (task,) = made.finish()

        assert (task.inputs, task.outputs, task.posts) == (["a", "c"], ["b"], [3, 0])
        assert (task.prompt, task.fillings, task.screenshot) == (PLAIN, (), None)
        assert made.findings == [(Notice.NEITHER, "d")]

    def test_no_task_at_all(self) -> None:
        made = Assigned(PLAIN, "ab")
        made.add(RolesAnswer(samples=[]), part("ab"))

        assert made.finish() == []
        assert made.findings == [(Notice.NEITHER, "a"), (Notice.NEITHER, "b")]

    def test_a_task_without_images_is_none(self) -> None:
        for several in (
            [told()],
            [told(), told()],
            [told(prompt_fill_blank=CAT)],
        ):
            made = Assigned(TEMPLATE, IMAGES)
            made.add(RolesAnswer.model_validate({"samples": several}), part())

            assert made.finish() == []
            neither = [what for notice, what in made.findings if notice is Notice.NEITHER]
            assert neither == list(IMAGES)

    def test_a_result_is_never_an_input(self) -> None:
        for several in (
            [told("ab", "b")],
            [told("ab", "c"), told("", "b")],
        ):
            tasks, findings = assigned(*several)
            apart = [("a", "c", ""), ("", "b", "")]
            assert shown(tasks) == ([("a", "b", "")] if len(several) == 1 else apart)
            assert findings == [(Notice.TWO_ROLES, "b")]

    @pytest.mark.parametrize("name", ["inputs", "outputs"])
    def test_an_image_that_was_not_shown(self, name: str) -> None:
        """Numbers below 1 and above the last are noted, each once; the rest is used."""
        tasks, findings = assigned({**told(), name: [0, 2, 11, 2, 11]})

        assert getattr(tasks[0], name) == ["b"]
        assert findings == [
            (Notice.UNKNOWN_NUMBER, "image 0"),
            (Notice.UNKNOWN_NUMBER, "image 11"),
        ]

    @pytest.mark.parametrize("name", ["conversation", "collage"])
    def test_a_screenshot_that_was_not_shown(self, name: str) -> None:
        tasks, findings = assigned({**told("a"), name: 0})

        assert shown(tasks) == [("a", "", "")]
        assert findings == [(Notice.UNKNOWN_NUMBER, "image 0")]

    def test_posts_are_the_samples_own(self) -> None:
        tasks, findings = assigned({**told("", "a"), "posts": [3, 2, 4, 3]})

        assert tasks[0].posts == [3]
        assert findings == [(Notice.NOT_ITS_POST, "post 2"), (Notice.UNKNOWN_NUMBER, "post 4")]


class TestTries:
    def test_results_of_the_same_inputs_are_one_task(self) -> None:
        tasks, findings = assigned(
            told("a", "b"),
            told("a", "c"),
            told("", "d"),
            told("", "e"),
        )
        assert (shown(tasks), findings) == ([("a", "bc", ""), ("", "de", "")], [])

    def test_fillings_of_one_image_come_in_one_order(self) -> None:
        """Two fillings claim image 1: whoever is named first, the same one gets it."""
        samples = [
            told("", "a", prompt_fill_blank=CAT),
            told("", "a", prompt_fill_blank=DOG),
            told("", "b", prompt_fill_blank=CAT),
        ]
        found = [
            [(task.prompt, task.outputs) for task in assigned(*order, prompt=TEMPLATE)[0]]
            for order in permutations(samples)
        ]

        assert all(told == found[0] for told in found)

    def test_what_was_made_from_words_gets_no_inputs_of_others(self) -> None:
        """By hand: image 1 came from the prompt, image 3 from the prompt and image 2."""
        samples = [told("", "a"), told("b", "c")]
        for order in permutations(samples):
            tasks, findings = assigned(*order)
            assert (shown(tasks), findings) == ([("", "a", ""), ("b", "c", "")], [])

    def test_posts_without_an_image_belong_to_the_first_try(self) -> None:
        tasks, _ = assigned(told("", "a"), told("b", "c"), {**told(), "posts": [3]})
        assert [(task.outputs, task.posts) for task in tasks] == [(["a"], [3]), (["c"], [])]

    def test_inputs_of_several_people_are_several_tasks(self) -> None:
        tasks, findings = assigned(told("a", "b"), told("c", "d"), told("e"))
        assert (shown(tasks), findings) == (
            [("a", "b", ""), ("c", "d", ""), ("e", "", "")],
            [],
        )

    def test_tries_that_share_an_image_are_one(self) -> None:
        tasks, _ = assigned(told("a", "c"), told("b", "d"), told("e", "cd"))
        assert shown(tasks) == [("abe", "cd", "")]

    def test_tries_stand_in_the_order_of_their_images(self) -> None:
        tasks, _ = assigned(told("", "d"), told("e", "f"), told("c", "b"))
        assert shown(tasks) == [("c", "b", ""), ("", "d", ""), ("e", "f", "")]


class TestScreenshots:
    def test_a_screenshot_is_neither_input_nor_output(self) -> None:
        tasks, findings = assigned(told("ab", "cd", conversation="b"), told("", "e", collage="d"))
        assert (shown(tasks), findings) == ([("a", "c", "b"), ("", "e", "d")], [])

    def test_told_in_words_and_shown_in_a_conversation(self) -> None:
        for several in permutations(
            [told("", "a"), told(conversation="c"), told(conversation="b")]
        ):
            tasks, _ = assigned(*several)
            assert shown(tasks) == [("", "a", "b"), ("", "", "c")]

    def test_a_whole_try_stays_beside_a_conversation(self) -> None:
        for several in permutations([told("a", "b"), told(conversation="c")]):
            tasks, findings = assigned(*several)
            assert (shown(tasks), findings) == ([("a", "b", ""), ("", "", "c")], [])

    def test_tasks_stand_in_the_order_of_their_images(self) -> None:
        samples = [
            told("e"),
            told("c"),
            told("d"),
            told(conversation="a"),
            told(conversation="b"),
        ]
        for order in permutations(samples):
            assert shown(assigned(*order)[0]) == [
                ("c", "", "a"),
                ("", "", "b"),
                ("d", "", ""),
                ("e", "", ""),
            ]

    def test_a_conversation_before_a_collage(self) -> None:
        made = Assigned(PLAIN, "ab")
        answer = {"inputs": [], "outputs": [1], "posts": [], "conversation": 2, "collage": 1}
        made.add(RolesAnswer.model_validate({"samples": [answer]}), part("ab"))

        assert shown(made.finish()) == [("", "", "b")]
        assert made.findings == [(Notice.NEITHER, "a")]

    def test_two_samples_of_one_conversation_are_one(self) -> None:
        tasks, _ = assigned(told("a", "", conversation="c"), told("", "b", conversation="c"))
        assert shown(tasks) == [("a", "b", "c")]

    def test_two_conversations_with_one_result(self) -> None:
        tasks, findings = assigned(told("", "e", conversation="b"), told("", "e", conversation="a"))
        assert shown(tasks) == [("", "e", "a"), ("", "", "b")]
        assert findings == [(Notice.IMAGE_USED_TWICE, "e")]


class TestTemplates:
    def test_a_completion_for_each_way_it_was_filled(self) -> None:
        tasks, findings = assigned(
            told("a", "d", prompt_fill_blank=DOG),
            told("a", "bc", prompt_fill_blank=CAT),
            prompt=TEMPLATE,
        )

        assert [task.prompt for task in tasks] == [
            "a cat in the sea, oil paint",
            "a dog in the sea, oil paint",
        ]
        assert tasks[0].fillings == (("[PET]", "cat"), ("[PLACE]", "sea"))
        assert (shown(tasks), findings) == ([("a", "bc", ""), ("a", "d", "")], [])

    def test_equal_completions_are_one(self) -> None:
        for several in permutations(
            [
                told("", "d", prompt_fill_blank=CAT),
                told("", "c", prompt_fill_blank=CAT, conversation="b"),
                told("", "", prompt_fill_blank=CAT, conversation="a"),
            ]
        ):
            tasks, findings = assigned(*several, prompt=TEMPLATE)
            assert (shown(tasks), findings) == ([("", "cd", "a")], [])

    def test_a_completion_has_its_image_before_the_template(self) -> None:
        tasks, findings = assigned(
            told("a", "bcd"), told("a", "b", prompt_fill_blank=CAT), prompt=TEMPLATE
        )

        assert [(task.prompt, task.inputs, task.outputs) for task in tasks] == [
            ("a cat in the sea, oil paint", ["a"], ["b"])
        ]
        assert findings == [(Notice.NOT_COMPLETED, "c"), (Notice.NOT_COMPLETED, "d")]

    def test_a_template_with_a_conversation_stays_beside_its_completions(self) -> None:
        tasks, _ = assigned(
            told("", "c", conversation="a"),
            told("", "b", prompt_fill_blank=CAT),
            prompt=TEMPLATE,
        )

        assert shown(tasks) == [("", "c", "a"), ("", "b", "")]
        assert [bool(task.fillings) for task in tasks] == [False, True]

    def test_a_completion_nobody_shows_leaves_the_template_alone(self) -> None:
        tasks, findings = assigned(told("a", prompt_fill_blank=CAT), prompt=TEMPLATE)

        assert [(task.prompt, task.fillings) for task in tasks] == [(TEMPLATE, ())]
        assert shown(tasks) == [("a", "", "")]
        assert findings == [(Notice.COMPLETION_WITHOUT_IMAGE, "a cat in the sea, oil paint")]

    def test_two_completions_of_one_image(self) -> None:
        for shot in ({}, {"conversation": "b"}):
            tasks, findings = assigned(
                told("", "" if shot else "b", prompt_fill_blank=CAT, **shot),
                told("", "" if shot else "b", prompt_fill_blank=DOG, **shot),
                prompt=TEMPLATE,
            )
            assert [task.prompt for task in tasks] == ["a cat in the sea, oil paint"]
            assert findings == [
                (Notice.IMAGE_USED_TWICE, "b"),
                (Notice.COMPLETION_WITHOUT_IMAGE, "a dog in the sea, oil paint"),
            ]

    def test_completions_stand_in_the_order_of_the_images_they_keep(self) -> None:
        owl = [{"placeholder": "[PET]", "value": "owl"}]
        samples = [
            told("", "ab", prompt_fill_blank=CAT),
            told("", "ad", prompt_fill_blank=DOG),
            told("", "bc", prompt_fill_blank=owl),
        ]
        for order in permutations(samples):
            tasks, _ = assigned(*order, prompt=TEMPLATE)
            assert shown(tasks) == [("", "ab", ""), ("", "c", ""), ("", "d", "")]

    def test_a_conversation_belongs_to_its_completion(self) -> None:
        tasks, findings = assigned(
            told("", "c", conversation="a"),
            told(conversation="a", prompt_fill_blank=CAT),
            prompt=TEMPLATE,
        )

        assert shown(tasks) == [("", "", "a")]
        assert findings == [(Notice.NOT_COMPLETED, "c")]

    @pytest.mark.parametrize("value", [" ", "[PET]"])
    def test_a_blank_filled_with_nothing_stays(self, value: str) -> None:
        blanks = [{"placeholder": "[PET]", "value": value}]
        tasks, findings = assigned(told("", "a", prompt_fill_blank=blanks), prompt=TEMPLATE)

        assert [(task.prompt, task.fillings) for task in tasks] == [(TEMPLATE, ())]
        assert findings == []

    def test_blanks_that_do_not_fit_are_noted(self) -> None:
        blanks = [*CAT[:1], *DOG[:1], {"placeholder": "[NOWHERE]", "value": "x"}]
        tasks, findings = assigned(told("", "a", prompt_fill_blank=blanks), prompt=TEMPLATE)

        assert tasks[0].prompt == "a cat in the [PLACE], oil paint"
        assert tasks[0].fillings == (("[PET]", "cat"),)
        assert findings == [
            (Notice.UNKNOWN_BLANK, "[NOWHERE]"),
            (Notice.UNKNOWN_BLANK, "[PET]"),
        ]

    @pytest.mark.parametrize("piece", [PLAIN, "fox", "a fox in", "snow"])
    def test_words_of_a_plain_prompt_are_not_replaced(self, piece: str) -> None:
        blanks = [{"placeholder": piece, "value": "something else"}]
        tasks, findings = assigned(told("", "a", prompt_fill_blank=blanks))

        assert [(task.prompt, task.fillings) for task in tasks] == [(PLAIN, ())]
        assert findings == [(Notice.UNKNOWN_BLANK, piece)]

    def test_nothing_is_noted_where_nothing_is_filled(self) -> None:
        tasks, findings = assigned(told("", "a"), prompt=TEMPLATE)
        assert ([task.prompt for task in tasks], findings) == ([TEMPLATE], [])


class TestMinors:
    def test_the_images_that_a_sample_names(self) -> None:
        made = Assigned(PLAIN, IMAGES)
        said = [told("a", "b", conversation="c", may_show_minor=True)]
        said.append(told("", "d", may_show_minor=False))
        made.add(RolesAnswer.model_validate({"samples": said}), part())
        assert made.may_show_minor == set("abc")

    @pytest.mark.parametrize("numbers", [[], [0, 11]])
    def test_where_no_image_is_named_it_may_be_any(self, numbers: list[int]) -> None:
        made = Assigned(PLAIN, IMAGES)
        said = {"inputs": numbers, "outputs": [], "posts": [], "may_show_minor": True}
        made.add(RolesAnswer.model_validate({"samples": [said]}), part())
        assert made.may_show_minor == set(IMAGES)

    @pytest.mark.parametrize("may_abstain", [False, True])
    @pytest.mark.parametrize("said", [{}, {"may_show_minor": None}, {"may_show_minor": False}])
    def test_a_model_that_is_silent_has_ruled_nobody_out(
        self, said: dict[str, Any], may_abstain: bool
    ) -> None:
        made = Assigned(PLAIN, IMAGES, may_abstain=may_abstain)
        made.add(RolesAnswer.model_validate({"samples": [told("a", "b", **said)]}), part())
        is_open = said.get("may_show_minor") is None and not may_abstain
        assert made.may_show_minor == (set("ab") if is_open else set())


@given(st.lists(ROLES_SAMPLES, min_size=1, max_size=3), st.sampled_from([TEMPLATE, PLAIN]))
def test_the_rules_hold_for_any_answer(answers: list[list[dict[str, Any]]], prompt: str) -> None:
    made = Assigned(prompt, IMAGES)
    for several in answers:
        made.add(RolesAnswer.model_validate({"samples": several}), part())
    tasks = made.finish()
    outputs = Counter(name for task in tasks for name in task.outputs)
    inputs = Counter(name for task in tasks for name in task.inputs if not task.fillings)
    shared = {name for task in tasks for name in task.inputs if task.fillings}
    shots = Counter(task.screenshot for task in tasks if task.screenshot)

    assert all(times == 1 for times in (outputs | inputs | shots).values())
    for some, others in permutations([set(outputs), set(inputs), shared, set(shots)], 2):
        assert not some & others
    left = [what for reason, what in made.findings if reason in ("neither", "not_completed")]
    used = {*outputs, *inputs, *shared, *shots}
    assert sorted(left) == sorted(set(IMAGES) - used)
    _each_task_is_whole(tasks, prompt)


def _each_task_is_whole(tasks: list[Task], prompt: str) -> None:
    assert [bool(task.fillings) for task in tasks] == sorted(bool(t.fillings) for t in tasks)
    assert len({task.prompt for task in tasks if task.fillings}) == sum(
        bool(task.fillings) for task in tasks
    )
    for task in tasks:
        assert bool(task.fillings) == (task.prompt != prompt)
        assert task.inputs == sorted(task.inputs)
        assert task.outputs == sorted(task.outputs)
        assert set(task.posts) <= {0, 1, 3}
        assert len(set(task.posts)) == len(task.posts)
        assert task.shown_by or not task.fillings
    assert all(task.images for task in tasks)
    told = [task for task in tasks if not task.fillings and not task.screenshot]
    assert sum(not task.inputs for task in told) <= 1


@given(ROLES_SAMPLES, st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(samples: list[dict[str, Any]], random: Any) -> None:
    found = [
        shown(assigned(*order, prompt=TEMPLATE)[0])
        for order in (samples, random.sample(samples, len(samples)))
    ]

    assert found[0] == found[1]
