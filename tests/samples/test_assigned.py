"""From whatever a model says of images to tasks that keep to the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.reasons import Notice
from echo_hf.samples.roles import Assigned
from echo_hf.samples.shown_images import RequestPart, RolesAnswer, SampleImage
from echo_hf.samples.tasks import Task
from tests.samples_for_tests import ROLES_SAMPLES, TEMPLATE

PLAIN = "a fox in the snow"
CAT = [{"placeholder": "[PET]", "value": "cat"}, {"placeholder": "[PLACE]", "value": "sea"}]
DOG = [{"placeholder": "[PET]", "value": "dog"}, {"placeholder": "[PLACE]", "value": "sea"}]
IMAGES = "abcdefghij"


def part(images: str = IMAGES, own: Sequence[int] = (0, 1, 3)) -> RequestPart:
    """A part that shows these images, and four posts of which some are the sample's own."""
    return RequestPart(
        (0, 1, 2, 3),
        frozenset(own),
        tuple(SampleImage(one, n % 4, None) for n, one in enumerate(images)),
    )


def one(inputs: str = "", outputs: str = "", **values: Any) -> dict[str, Any]:
    """A sample of an answer, its images named by letters as in a part that shows all."""
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


def assigned(*samples: dict[str, Any], prompt: str = PLAIN) -> tuple[list[Task], list[Any]]:
    """Tasks and findings for an answer about ten images, those without a role left out."""
    made = Assigned(prompt, IMAGES)
    made.add(RolesAnswer.model_validate({"samples": samples}), part())
    tasks = made.finish()
    return tasks, [one for one in made.findings if one[0] is not Notice.NEITHER]


def shown(tasks: Sequence[Task]) -> list[tuple[str, ...]]:
    """Inputs, outputs and screenshot of each task."""
    return [("".join(t.inputs), "".join(t.outputs), t.screenshot or "") for t in tasks]


class TestRoles:
    """Which images go in and come out."""

    def test_an_ordinary_answer(self) -> None:
        """Roles as said, in the order of the posts; posts as said; all else is neither."""
        made = Assigned(PLAIN, "abcd")
        answer = {"inputs": [3, 1], "outputs": [2], "posts": [3, 0]}
        made.add(RolesAnswer.model_validate({"samples": [answer]}), part("abcd"))
        (task,) = made.finish()

        assert (task.inputs, task.outputs, task.posts) == (["a", "c"], ["b"], [3, 0])
        assert (task.prompt, task.fillings, task.screenshot) == (PLAIN, (), None)
        assert made.findings == [(Notice.NEITHER, "d")]

    def test_no_task_at_all(self) -> None:
        """No sample is no task, and each image is named."""
        made = Assigned(PLAIN, "ab")
        made.add(RolesAnswer(samples=[]), part("ab"))

        assert made.finish() == []
        assert made.findings == [(Notice.NEITHER, "a"), (Notice.NEITHER, "b")]

    def test_a_task_without_images_is_none(self) -> None:
        """Images that all have nothing to do with the words show no task."""
        for samples in ([one()], [one(), one()], [one(prompt_fill_blank=CAT)]):
            made = Assigned(TEMPLATE, IMAGES)
            made.add(RolesAnswer.model_validate({"samples": samples}), part())

            assert made.finish() == []
            neither = [what for notice, what in made.findings if notice is Notice.NEITHER]
            assert neither == list(IMAGES)

    def test_a_result_is_never_an_input(self) -> None:
        """What is both counts as output, also where another sample calls it an input."""
        for samples in ([one("ab", "b")], [one("ab", "c"), one("", "b")]):
            tasks, findings = assigned(*samples)
            apart = [("a", "c", ""), ("", "b", "")]
            assert shown(tasks) == ([("a", "b", "")] if len(samples) == 1 else apart)
            assert findings == [(Notice.TWO_ROLES, "b")]

    @pytest.mark.parametrize("name", ["inputs", "outputs"])
    def test_an_image_that_was_not_shown(self, name: str) -> None:
        """Numbers below 1 and above the last are noted, each once; the rest is used."""
        tasks, findings = assigned({**one(), name: [0, 2, 11, 2, 11]})

        assert getattr(tasks[0], name) == ["b"]
        assert findings == [
            (Notice.UNKNOWN_NUMBER, "image 0"),
            (Notice.UNKNOWN_NUMBER, "image 11"),
        ]

    @pytest.mark.parametrize("name", ["conversation", "collage"])
    def test_a_screenshot_that_was_not_shown(self, name: str) -> None:
        """Also a screenshot is named by a number that was shown, or noted."""
        tasks, findings = assigned({**one("a"), name: 0})

        assert shown(tasks) == [("a", "", "")]
        assert findings == [(Notice.UNKNOWN_NUMBER, "image 0")]

    def test_posts_are_the_samples_own(self) -> None:
        """A post that only stands above, and one that was not shown, are noted and left out."""
        tasks, findings = assigned({**one("", "a"), "posts": [3, 2, 4, 3]})

        assert tasks[0].posts == [3]
        assert findings == [(Notice.NOT_ITS_POST, "post 2"), (Notice.UNKNOWN_NUMBER, "post 4")]


class TestTries:
    """What several samples of one prompt are."""

    def test_results_of_the_same_inputs_are_one_task(self) -> None:
        """Those of the words alone are another one, however many tell of them."""
        tasks, findings = assigned(one("a", "b"), one("a", "c"), one("", "d"), one("", "e"))
        assert (shown(tasks), findings) == ([("a", "bc", ""), ("", "de", "")], [])

    def test_fillings_of_one_image_come_in_one_order(self) -> None:
        """Two fillings claim image 1: whoever is named first, the same one gets it."""
        samples = [
            one("", "a", prompt_fill_blank=CAT),
            one("", "a", prompt_fill_blank=DOG),
            one("", "b", prompt_fill_blank=CAT),
        ]
        found = [
            [(task.prompt, task.outputs) for task in assigned(*order, prompt=TEMPLATE)[0]]
            for order in permutations(samples)
        ]

        assert all(one == found[0] for one in found)

    def test_what_was_made_from_words_gets_no_inputs_of_others(self) -> None:
        """By hand: image 1 came from the prompt, image 3 from the prompt and image 2."""
        samples = [one("", "a"), one("b", "c")]
        for order in permutations(samples):
            tasks, findings = assigned(*order)
            assert (shown(tasks), findings) == ([("", "a", ""), ("b", "c", "")], [])

    def test_posts_without_an_image_belong_to_the_first_try(self) -> None:
        """They make no task of their own."""
        tasks, _ = assigned(one("", "a"), one("b", "c"), {**one(), "posts": [3]})
        assert [(task.outputs, task.posts) for task in tasks] == [(["a"], [3]), (["c"], [])]

    def test_inputs_of_several_people_are_several_tasks(self) -> None:
        """No system is given the photos of all who tried a prompt."""
        tasks, findings = assigned(one("a", "b"), one("c", "d"), one("e"))
        assert (shown(tasks), findings) == (
            [("a", "b", ""), ("c", "d", ""), ("e", "", "")],
            [],
        )

    def test_tries_that_share_an_image_are_one(self) -> None:
        """Through a third one as well."""
        tasks, _ = assigned(one("a", "c"), one("b", "d"), one("e", "cd"))
        assert shown(tasks) == [("abe", "cd", "")]

    def test_tries_stand_in_the_order_of_their_images(self) -> None:
        """Whether they have inputs or not."""
        tasks, _ = assigned(one("", "d"), one("e", "f"), one("c", "b"))
        assert shown(tasks) == [("c", "b", ""), ("", "d", ""), ("e", "f", "")]


class TestScreenshots:
    """Conversations and collages."""

    def test_a_screenshot_is_neither_input_nor_output(self) -> None:
        """Whichever sample says so."""
        tasks, findings = assigned(one("ab", "cd", conversation="b"), one("", "e", collage="d"))
        assert (shown(tasks), findings) == ([("a", "c", "b"), ("", "e", "d")], [])

    def test_told_in_words_and_shown_in_a_conversation(self) -> None:
        """Is one task, with the first conversation; each further one is a task."""
        for samples in permutations([one("", "a"), one(conversation="c"), one(conversation="b")]):
            tasks, _ = assigned(*samples)
            assert shown(tasks) == [("", "a", "b"), ("", "", "c")]

    def test_a_whole_try_stays_beside_a_conversation(self) -> None:
        """An image before and after is a task for any system; the conversation is another one."""
        for samples in permutations([one("a", "b"), one(conversation="c")]):
            tasks, findings = assigned(*samples)
            assert (shown(tasks), findings) == ([("a", "b", ""), ("", "", "c")], [])

    def test_tasks_stand_in_the_order_of_their_images(self) -> None:
        """Tries and screenshots mixed: the first of all is the sample itself."""
        samples = [one("e"), one("c"), one("d"), one(conversation="a"), one(conversation="b")]
        for order in permutations(samples):
            assert shown(assigned(*order)[0]) == [
                ("c", "", "a"),
                ("", "", "b"),
                ("d", "", ""),
                ("e", "", ""),
            ]

    def test_a_conversation_before_a_collage(self) -> None:
        """A sample that names both is read from the conversation; the collage has no role."""
        made = Assigned(PLAIN, "ab")
        answer = {"inputs": [], "outputs": [1], "posts": [], "conversation": 2, "collage": 1}
        made.add(RolesAnswer.model_validate({"samples": [answer]}), part("ab"))

        assert shown(made.finish()) == [("", "", "b")]
        assert made.findings == [(Notice.NEITHER, "a")]

    def test_two_samples_of_one_conversation_are_one(self) -> None:
        """A conversation is a task once."""
        tasks, _ = assigned(one("a", "", conversation="c"), one("", "b", conversation="c"))
        assert shown(tasks) == [("a", "b", "c")]

    def test_two_conversations_with_one_result(self) -> None:
        """The first one has it."""
        tasks, findings = assigned(one("", "e", conversation="b"), one("", "e", conversation="a"))
        assert shown(tasks) == [("", "e", "a"), ("", "", "b")]
        assert findings == [(Notice.IMAGE_USED_TWICE, "e")]


class TestTemplates:
    """Completions and what is left of their template."""

    def test_a_completion_for_each_way_it_was_filled(self) -> None:
        """In the order of their images; they may share inputs."""
        tasks, findings = assigned(
            one("a", "d", prompt_fill_blank=DOG),
            one("a", "bc", prompt_fill_blank=CAT),
            prompt=TEMPLATE,
        )

        assert [task.prompt for task in tasks] == [
            "a cat in the sea, oil paint",
            "a dog in the sea, oil paint",
        ]
        assert tasks[0].fillings == (("[PET]", "cat"), ("[PLACE]", "sea"))
        assert (shown(tasks), findings) == ([("a", "bc", ""), ("a", "d", "")], [])

    def test_equal_completions_are_one(self) -> None:
        """However many samples say so, and whichever of their screenshots comes first."""
        for samples in permutations(
            [
                one("", "d", prompt_fill_blank=CAT),
                one("", "c", prompt_fill_blank=CAT, conversation="b"),
                one("", "", prompt_fill_blank=CAT, conversation="a"),
            ]
        ):
            tasks, findings = assigned(*samples, prompt=TEMPLATE)
            assert (shown(tasks), findings) == ([("", "cd", "a")], [])

    def test_a_completion_has_its_image_before_the_template(self) -> None:
        """Beside completions the template is no task, and its other images are named."""
        tasks, findings = assigned(
            one("a", "bcd"), one("a", "b", prompt_fill_blank=CAT), prompt=TEMPLATE
        )

        assert [(task.prompt, task.inputs, task.outputs) for task in tasks] == [
            ("a cat in the sea, oil paint", ["a"], ["b"])
        ]
        assert findings == [(Notice.NOT_COMPLETED, "c"), (Notice.NOT_COMPLETED, "d")]

    def test_a_template_with_a_conversation_stays_beside_its_completions(self) -> None:
        """The conversation says by itself what was asked."""
        tasks, _ = assigned(
            one("", "c", conversation="a"), one("", "b", prompt_fill_blank=CAT), prompt=TEMPLATE
        )

        assert shown(tasks) == [("", "c", "a"), ("", "b", "")]
        assert [bool(task.fillings) for task in tasks] == [False, True]

    def test_a_completion_nobody_shows_leaves_the_template_alone(self) -> None:
        """Its inputs are those of the template."""
        tasks, findings = assigned(one("a", prompt_fill_blank=CAT), prompt=TEMPLATE)

        assert [(task.prompt, task.fillings) for task in tasks] == [(TEMPLATE, ())]
        assert shown(tasks) == [("a", "", "")]
        assert findings == [(Notice.COMPLETION_WITHOUT_IMAGE, "a cat in the sea, oil paint")]

    def test_two_completions_of_one_image(self) -> None:
        """The image shows one of them; the other one is not shown at all."""
        for shot in ({}, {"conversation": "b"}):
            tasks, findings = assigned(
                one("", "" if shot else "b", prompt_fill_blank=CAT, **shot),
                one("", "" if shot else "b", prompt_fill_blank=DOG, **shot),
                prompt=TEMPLATE,
            )
            assert [task.prompt for task in tasks] == ["a cat in the sea, oil paint"]
            assert findings == [
                (Notice.IMAGE_USED_TWICE, "b"),
                (Notice.COMPLETION_WITHOUT_IMAGE, "a dog in the sea, oil paint"),
            ]

    def test_completions_stand_in_the_order_of_the_images_they_keep(self) -> None:
        """What another completion has before it does not count."""
        owl = [{"placeholder": "[PET]", "value": "owl"}]
        samples = [
            one("", "ab", prompt_fill_blank=CAT),
            one("", "ad", prompt_fill_blank=DOG),
            one("", "bc", prompt_fill_blank=owl),
        ]
        for order in permutations(samples):
            tasks, _ = assigned(*order, prompt=TEMPLATE)
            assert shown(tasks) == [("", "ab", ""), ("", "c", ""), ("", "d", "")]

    def test_a_conversation_belongs_to_its_completion(self) -> None:
        """A sample that names it without filling blanks is the template."""
        tasks, findings = assigned(
            one("", "c", conversation="a"),
            one(conversation="a", prompt_fill_blank=CAT),
            prompt=TEMPLATE,
        )

        assert shown(tasks) == [("", "", "a")]
        assert findings == [(Notice.NOT_COMPLETED, "c")]

    @pytest.mark.parametrize("value", [" ", "[PET]"])
    def test_a_blank_filled_with_nothing_stays(self, value: str) -> None:
        """Such an answer completes nothing, and is no completion."""
        blanks = [{"placeholder": "[PET]", "value": value}]
        tasks, findings = assigned(one("", "a", prompt_fill_blank=blanks), prompt=TEMPLATE)

        assert [(task.prompt, task.fillings) for task in tasks] == [(TEMPLATE, ())]
        assert findings == []

    def test_blanks_that_do_not_fit_are_noted(self) -> None:
        """A blank that the prompt lacks, and one value too many, which nothing records."""
        blanks = [*CAT[:1], *DOG[:1], {"placeholder": "[NOWHERE]", "value": "x"}]
        tasks, findings = assigned(one("", "a", prompt_fill_blank=blanks), prompt=TEMPLATE)

        assert tasks[0].prompt == "a cat in the [PLACE], oil paint"
        assert tasks[0].fillings == (("[PET]", "cat"),)
        assert findings == [
            (Notice.UNKNOWN_BLANK, "[NOWHERE]"),
            (Notice.UNKNOWN_BLANK, "[PET]"),
        ]

    @pytest.mark.parametrize("piece", [PLAIN, "fox", "a fox in", "snow"])
    def test_words_of_a_plain_prompt_are_not_replaced(self, piece: str) -> None:
        """What people wrote is the task, whatever a model would like it to be."""
        blanks = [{"placeholder": piece, "value": "something else"}]
        tasks, findings = assigned(one("", "a", prompt_fill_blank=blanks))

        assert [(task.prompt, task.fillings) for task in tasks] == [(PLAIN, ())]
        assert findings == [(Notice.UNKNOWN_BLANK, piece)]

    def test_nothing_is_noted_where_nothing_is_filled(self) -> None:
        """Blanks that are left alone are no fault."""
        tasks, findings = assigned(one("", "a"), prompt=TEMPLATE)
        assert ([task.prompt for task in tasks], findings) == ([TEMPLATE], [])


class TestMinors:
    """Images that a person has to look at."""

    def test_the_images_that_a_sample_names(self) -> None:
        """Inputs, outputs and screenshots of a sample of which it was said, and no others."""
        made = Assigned(PLAIN, IMAGES)
        said = [one("a", "b", conversation="c", may_show_minor=True)]
        said.append(one("", "d", may_show_minor=False))
        made.add(RolesAnswer.model_validate({"samples": said}), part())
        assert made.may_show_minor == set("abc")

    @pytest.mark.parametrize("numbers", [[], [0, 11]])
    def test_where_no_image_is_named_it_may_be_any(self, numbers: list[int]) -> None:
        """Nothing that was shown is taken to be harmless."""
        made = Assigned(PLAIN, IMAGES)
        said = {"inputs": numbers, "outputs": [], "posts": [], "may_show_minor": True}
        made.add(RolesAnswer.model_validate({"samples": [said]}), part())
        assert made.may_show_minor == set(IMAGES)

    @pytest.mark.parametrize("may_abstain", [False, True])
    @pytest.mark.parametrize("said", [{}, {"may_show_minor": None}, {"may_show_minor": False}])
    def test_a_model_that_is_silent_has_ruled_nobody_out(
        self, said: dict[str, Any], may_abstain: bool
    ) -> None:
        """Only a clear no, or an engine that may abstain, leaves the images unmarked."""
        made = Assigned(PLAIN, IMAGES, may_abstain=may_abstain)
        made.add(RolesAnswer.model_validate({"samples": [one("a", "b", **said)]}), part())
        is_open = said.get("may_show_minor") is None and not may_abstain
        assert made.may_show_minor == (set("ab") if is_open else set())


@given(st.lists(ROLES_SAMPLES, min_size=1, max_size=3), st.sampled_from([TEMPLATE, PLAIN]))
def test_the_rules_hold_for_any_answer(answers: list[list[dict[str, Any]]], prompt: str) -> None:
    """An image has one role in one task, or a notice; screenshots have none."""
    made = Assigned(prompt, IMAGES)
    for samples in answers:
        made.add(RolesAnswer.model_validate({"samples": samples}), part())
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
    """Shuffled samples give tasks of the same images."""
    found = [
        shown(assigned(*order, prompt=TEMPLATE)[0])
        for order in (samples, random.sample(samples, len(samples)))
    ]

    assert found[0] == found[1]
