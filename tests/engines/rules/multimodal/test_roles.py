"""The roles of pictures by plain rules, on invented posts with roles decided by hand."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from echo_hf.engines.rules.images import roles
from echo_hf.samples.blanks import completed, placeholders
from echo_hf.samples.shown_images import RolesAnswer, RolesSample
from tests.engines.rules.multimodal.drawn_pictures import (
    DAY,
    FADED,
    NIGHT,
    beside,
    chat,
    portrait,
    scene,
    sketch,
)

TARGET = {
    "name": "Lumen Image",
    "developer": "Northlight",
    "aliases": ["lumen"],
    "others": ["Paintbox", "DreamMill"],
    "chat_window": "Lumen Chat",
}
MIRA, TOMO, ANA = "author 1", "author 2", "author 3"
# A picture, its description, both, or neither.
Shown = Image.Image | str | tuple[Image.Image, str] | None
Said = tuple[int, str | None, str, list[Shown]]
Judge = Callable[..., list[RolesSample] | None]
UNSEEN = None


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Judges a prompt and posts: parent, author, text and pictures of each."""

    def judged(prompt: str, *posts: Said, target: dict[str, Any] = TARGET) -> Any:
        return answered(request(tmp_path, prompt, posts, target))

    return judged


def request(
    folder: Path, prompt: str, posts: tuple[Said, ...], target: dict[str, Any]
) -> dict[str, Any]:
    """What the stage gives the rules."""
    pictures: list[dict[str, Any]] = []
    said = []
    for number, (parent, author, text, shown) in enumerate(posts):
        first = len(pictures) + 1
        pictures += [
            picture(folder / f"{first + at}.png", number, one, first + at)
            for at, one in enumerate(shown)
        ]
        numbers = list(range(first, len(pictures) + 1))
        post = {"number": number, "parent": parent, "author": author, "text": text, "own": True}
        said.append({**post, "pictures": numbers})
    inputs = {"prompt": prompt, "placeholders": placeholders(prompt), "target": target}
    return {**inputs, "posts": said, "pictures": pictures}


def picture(file: Path, post: int, shown: Shown, number: int) -> dict[str, Any]:
    """A picture as a request has it."""
    drawn, alt = shown if isinstance(shown, tuple) else (shown, shown)
    if isinstance(drawn, Image.Image):
        drawn.save(file)
    return {
        "number": number,
        "post": post,
        "alt_text": alt if isinstance(alt, str) else None,
        "file": file if isinstance(drawn, Image.Image) else None,
    }


def answered(inputs: dict[str, Any]) -> list[RolesSample] | None:
    """The samples that the rules answer with, null when they abstain."""
    said = roles(inputs)
    return None if said is None else RolesAnswer.model_validate_json(said).samples


def one(samples: list[RolesSample] | None) -> tuple[list[int], list[int]]:
    """Inputs and outputs of the only sample."""
    assert samples is not None
    (only,) = samples
    return only.inputs, only.outputs


def post(text: str, *shown: Shown) -> Said:
    """The post with the task."""
    return (-1, MIRA, text, list(shown))


def reply(author: str, text: str, *shown: Shown) -> Said:
    """An answer to the post with the task."""
    return (0, author, text, list(shown))


def test_a_prompt_of_words_alone_has_outputs_only(judge: Judge) -> None:
    """All people who tried it count."""
    prompt = "A red fox in the snow, gouache"
    samples = judge(prompt, post(f"Prompt: {prompt}", UNSEEN, UNSEEN), reply(TOMO, "", UNSEEN))

    assert one(samples) == ([], [1, 2, 3])
    assert samples[0].posts == [0, 1]


@pytest.mark.parametrize(
    ("prompt", "said", "inputs"),
    [
        ("Turn this photo into a stamp", "1st is my photo, 2nd what lumen gave me back", [1]),
        ("Restore this photo", "First picture: the result. Second picture: the scan.", [2]),
        ("Make this sketch a painting", "sketch first, picture second", [1]),
        ("Mach aus diesem Foto ein Ölgemälde", "links das Original, rechts das Ergebnis", [1]),
        ("Transforme cette photo en gravure", "avant / après", [1]),
        ("Restaura esta foto antigua", "después / antes", [2]),
        ("Trasforma questo schizzo in un acquerello", "prima il risultato, poi lo schizzo", [2]),
        ("Transforme este desenho em uma pintura", "antes e depois 🎨", [1]),
        ("把这张照片变成夜景", "第一张是效果图，第二张是原图", [2]),
        ("この線画に色を塗ってください", "1枚目が元の線画、2枚目が結果。", [1]),
    ],
)
def test_words_tell_which_picture_went_in(
    judge: Judge, prompt: str, said: str, inputs: list[int]
) -> None:
    """Whatever the order, in the languages that the rules cover."""
    samples = judge(prompt, post(f"{said}\n\n{prompt}", UNSEEN, UNSEEN))

    assert one(samples) == (inputs, [3 - inputs[0]])


@pytest.mark.parametrize(
    ("said", "inputs"),
    [
        ("1+2 = inputs, 3 = output", [1, 2]),
        ("the first is the result, the others are what I uploaded", [2, 3]),
        ("result first, then the two photos I used", [2, 3]),
        ("my cat, my sofa, and what Lumen made of them", [1, 2]),
        ("前两张是原图，最后一张是效果图", [1, 2]),
    ],
)
def test_words_tell_which_of_several_went_in(judge: Judge, said: str, inputs: list[int]) -> None:
    """Sets of pictures, lists in order, and the rest."""
    prompt = "Combine these two pictures into one poster"
    samples = judge(prompt, post(f"{said}\n{prompt}", UNSEEN, UNSEEN, UNSEEN))

    assert one(samples) == (inputs, [n for n in (1, 2, 3) if n not in inputs])


@pytest.mark.parametrize(
    ("prompt", "before", "after"),
    [
        ("Make this photo a night scene", scene(), scene(NIGHT)),
        ("Make this night photo a sunny day", scene(NIGHT), scene()),
        ("Make this sketch a finished painting", sketch(), scene()),
        ("Turn this photo into a pencil sketch", scene(), sketch()),
        ("Restore this old photo and add natural colours", scene(FADED), scene()),
        ("Make this photo black and white", scene(), scene().convert("L")),
        ("Change the colour of the house to blue", scene(), scene(DAY._replace(house="#2b49c8"))),
        (
            "Put this man in an orange suit in front of a green wall",
            portrait(),
            portrait("#f07a1c", "#3f9a4a"),
        ),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_looks_tell_where_words_do_not(
    judge: Judge, prompt: str, before: Image.Image, after: Image.Image, swapped: bool
) -> None:
    """The prompt says how the two differ, so the order of the pictures does not matter."""
    shown = [after, before] if swapped else [before, after]

    assert one(judge(prompt, post(prompt, *shown))) == (([2], [1]) if swapped else ([1], [2]))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_blend_has_the_colours_of_all_others(judge: Judge, place: int) -> None:
    """The picture that is put together from the two others came out."""
    blend = scene()
    blend.paste(portrait().crop((50, 20, 190, 180)).resize((90, 110)), (120, 60))
    shown = [portrait(), scene()]
    shown.insert(place, blend)
    prompt = "Put the man from image 1 in front of the house from image 2"

    inputs, outputs = one(judge(prompt, post(prompt, *shown)))

    assert outputs == [place + 1]
    assert inputs == [n for n in (1, 2, 3) if n != place + 1]


def test_descriptions_tell(judge: Judge) -> None:
    """What a prompt takes away is in what went in, what it asks for in what came out."""
    prompt = "Remove the scratches and add a golden frame. Keep the boat."
    samples = judge(
        prompt, post(prompt, "A boat in a golden frame", "The same boat, all scratched")
    )

    assert one(samples) == ([2], [1])


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("Make this man smile", [portrait(), portrait()]),
        ("Turn this photo into a stamp", [UNSEEN, UNSEEN]),
        ("Сделай из этого фото открытку", [UNSEEN, UNSEEN]),
    ],
)
def test_rules_abstain_where_nothing_tells(judge: Judge, prompt: str, shown: list[Shown]) -> None:
    """An edit whose pictures look the same, cannot be seen, or are spoken of in other words."""
    assert judge(prompt, post(prompt, *shown)) is None


def test_the_original_may_stand_in_a_reply(judge: Judge) -> None:
    """Told by its author, or seen."""
    prompt = "Make this sketch a painting"

    told = judge(prompt, post(prompt, UNSEEN), reply(MIRA, "the original:", UNSEEN))
    seen = judge(prompt, post(prompt, scene()), reply(MIRA, "", sketch()))
    again = judge(prompt, post(prompt, scene()), reply(MIRA, "another try", scene(NIGHT)))

    assert [one(some) for some in (told, seen, again)] == [([2], [1]), ([2], [1]), ([], [1, 2])]


def test_whoever_puts_in_another_picture_gets_a_sample(judge: Judge) -> None:
    """What others made of pictures that they do not show is no result of the task."""
    prompt = "Turn this photo into a night scene"
    samples = judge(
        prompt,
        post(f"1st original, 2nd result. {prompt}", scene(), scene(NIGHT)),
        reply(TOMO, "left: mine, right: lumen", portrait(), portrait("#101a3c", "#05070f")),
        reply(ANA, "mine!", portrait("#101a3c", "#05070f")),
        reply(ANA, "same photo, again", scene(NIGHT)),
    )

    assert samples is not None
    assert [(some.inputs, some.outputs) for some in samples] == [([1], [2, 6]), ([3], [4])]


def test_an_offered_picture_goes_in(judge: Judge) -> None:
    """A photo to try the prompt on is no result."""
    prompt = "Make this photo look like a comic"
    samples = judge(
        prompt, post(f"use this photo, show me yours. {prompt}", scene()), reply(TOMO, "", UNSEEN)
    )

    assert one(samples) == ([1], [2])


def test_what_is_no_result_is_left_out(judge: Judge) -> None:
    """Other models, the real thing, pictures that show nothing."""
    prompt = "Draw the old lighthouse of my town"
    samples = judge(
        prompt,
        post(f"left: DreamMill, right: Lumen Image. {prompt}", UNSEEN, UNSEEN),
        reply(TOMO, "here is what Paintbox made of it", UNSEEN),
        reply(ANA, "the real one for comparison", UNSEEN),
        reply(ANA, "", Image.new("RGB", (200, 200), "white")),
    )

    assert one(samples) == ([], [2])


@pytest.mark.parametrize(
    ("said", "prompt", "shown"),
    [
        ("left: what my son drew, right: lumen", "Turn this drawing into a photo", UNSEEN),
        ("", "Turn this drawing into a photo", UNSEEN),
        ("", "Make this photo a night scene", beside(scene(), scene(NIGHT))),
        ("before / after", "A house by a meadow, watercolour", UNSEEN),
    ],
)
def test_two_pictures_in_one_are_a_collage(
    judge: Judge, said: str, prompt: str, shown: Image.Image | None
) -> None:
    """Told by words, or seen where the prompt edits a picture; it is neither input nor output."""
    picture = shown or beside(sketch(), scene(), gap=4)
    samples = judge(prompt, post(f"{said}\n{prompt}", picture))

    assert one(samples) == ([], [])
    assert [(some.collage, some.conversation) for some in samples] == [(1, None)]


def test_a_split_picture_that_was_asked_for_is_an_output(judge: Judge) -> None:
    """Without a picture to edit, two halves are what the prompt is about."""
    prompt = "A poster in two halves: the same house by day and by night"

    assert one(judge(prompt, post(prompt, beside(scene(), scene(NIGHT))))) == ([], [1])


@pytest.mark.parametrize(
    "colours", [("white", "#ededf2", "black"), ("#202225", "#3a3d42", "white")]
)
def test_a_conversation_is_a_screenshot_of_the_targets_window(
    judge: Judge, colours: tuple[str, str, str]
) -> None:
    """It stands in neither list; of several in one post the one that shows most is taken."""
    told = "you asked: the whole thing from Lumen Chat"
    samples = judge(told, post(told, chat(None, *colours), chat(scene(), *colours)))

    assert one(samples) == ([], [])
    assert samples[0].conversation == 2


def test_each_conversation_gets_a_sample(judge: Judge) -> None:
    """The first stands with what is told in words."""
    prompt = "A bowl of noodles from above, warm colours"
    samples = judge(
        prompt,
        post(f"Prompt: {prompt}", scene()),
        reply(TOMO, "screenshot from Lumen Chat", chat(scene())),
        reply(ANA, "", (chat(scene(NIGHT)), "My conversation in Lumen Chat and its picture")),
    )

    assert samples is not None
    told = [(some.outputs, some.conversation, some.posts) for some in samples]
    assert told == [([1], 2, [0, 1]), ([], 3, [0, 2])]


@pytest.mark.parametrize(
    ("said", "window"),
    [
        ("DreamMill refuses, here's the chat", chat(scene())),
        ("screenshot from Lumen Chat", chat(None)),
    ],
)
def test_other_windows_are_neither(judge: Judge, said: str, window: Image.Image) -> None:
    """Another product's window, and one in which no picture is made."""
    prompt = "A bowl of noodles from above, warm colours"
    samples = judge(prompt, post(f"Prompt: {prompt}", scene()), reply(TOMO, said, window))

    assert one(samples) == ([], [1])
    assert samples[0].conversation is None


def test_a_window_that_nobody_names_needs_a_model(judge: Judge) -> None:
    """Rules cannot read whose window it is."""
    prompt = "A bowl of noodles from above, warm colours"
    posts = post(f"Prompt: {prompt}", scene()), reply(TOMO, "how I got there", chat(scene()))

    assert judge(prompt, *posts) is None


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Draw a chat app interface with a house in it", "made in Lumen Chat"),
        ("A poster about houses, clean and plain", "made in Lumen Chat"),
    ],
)
def test_what_looks_like_a_window_may_be_what_was_asked_for(
    judge: Judge, prompt: str, said: str
) -> None:
    """An interface that was drawn is a result, as is a plain page without controls."""
    page = chat(scene())
    page.paste("white", (0, 470, 360, 560))

    assert one(judge(prompt, post(f"{said}. Prompt: {prompt}", page))) == ([], [1])


@pytest.mark.parametrize(
    ("prompt", "posts", "filled"),
    [
        (
            "A felt [ANIMAL] dressed as a [JOB]",
            ["mine: a fox, a baker", "a turtle postman", "went with hedgehog / astronaut 🦔"],
            [
                "fox dressed as a baker",
                "turtle dressed as a postman",
                "hedgehog dressed as a astro",
            ],
        ),
        (
            "A stamp with (object) and the word (word)",
            ["first one: a kettle, TEA", "a pear, and the word is MELLOW"],
            ["a kettle and the word TEA", "a pear and the word MELLOW"],
        ),
        (
            'Poster: {argument name="city" default="Oslo"}, {argument name="time" default="fall"}',
            ["", "city: Lisbon, time: winter", "so pretty"],
            ["Oslo, fall", "Lisbon, winter"],
        ),
        (
            "If ___ were a cereal box, bright colours",
            ["fill in the blank!", "If Mondays were a cereal box", "elbows"],
            ["If Mondays were", "If elbows were"],
        ),
        (
            "【動物】の駅長さん、水彩画",
            ["穴埋め。私は：たぬき", "カピバラ！"],
            ["たぬきの", "カピバラの"],
        ),
        (
            "Un sello con [OBJETO]",
            ["el mío: una tetera", "yo puse un faro"],
            ["una tetera", "un faro"],
        ),
        ("A 3D icon of [🍔], soft", ["", "🍕", "🔥🔥"], ["🍔", "🍕"]),
        ("A [FRUIT] shaped lamp", ["such fun!", "love it, thanks!", "next level"], []),
    ],
)
def test_a_template_gives_a_sample_for_each_completion(
    judge: Judge, prompt: str, posts: list[str], filled: list[str]
) -> None:
    """Values come from what people say; where they say none the blanks are left alone."""
    first, *others = posts
    people = (reply(f"author {n}", said, UNSEEN) for n, said in enumerate(others, 2))
    samples = judge(prompt, post(f"{first}\n{prompt}", UNSEEN), *people)

    assert samples is not None
    completions = [some for some in samples if some.prompt_fill_blank]
    done = [
        completed(prompt, [(blank.placeholder, blank.value) for blank in some.prompt_fill_blank])
        for some in completions
    ]
    assert len(done) == len(filled)
    assert all(part in whole.prompt for part, whole in zip(filled, done, strict=True))
    assert all(not whole.unknown + whole.left for whole in done)
    shown = sorted(number for some in samples for number in some.outputs)
    assert shown == list(range(1, len(posts) + 1))


def test_several_pictures_of_one_post_are_filled_one_by_one(judge: Judge) -> None:
    """From a list in their order, or from the description of each."""
    prompt = "A [FRUIT] shaped lamp"
    listed = judge(prompt, post(f"{prompt}\nmine: lemon, pear and fig", UNSEEN, UNSEEN, UNSEEN))
    described = judge(prompt, post(prompt, "A lemon shaped lamp", "a fig shaped lamp on a desk"))

    for samples, values in ((listed, ["lemon", "pear", "fig"]), (described, ["lemon", "fig"])):
        assert samples is not None
        assert [some.prompt_fill_blank[0].value for some in samples] == values
        assert [some.outputs for some in samples] == [[n + 1] for n in range(len(values))]


def test_completions_share_the_authors_input(judge: Judge) -> None:
    """A template that edits a picture keeps it for all."""
    prompt = "Turn this photo into [STYLE]"
    samples = judge(
        prompt,
        post(f"1st my photo, 2nd the result. STYLE: linocut. {prompt}", UNSEEN, UNSEEN),
        reply(TOMO, "style = mosaic", UNSEEN),
    )

    assert samples is not None
    assert [(some.inputs, some.outputs) for some in samples] == [([1], [2]), ([1], [3])]


def test_unreadable_pictures_are_unknown(tmp_path: Path, judge: Judge) -> None:
    """Bytes that are no picture, and a file that is gone, do no harm."""
    prompt = "Make this sketch a painting"
    inputs = request(tmp_path, prompt, (post(prompt, sketch(), scene()),), TARGET)
    inputs["pictures"][0]["file"].write_bytes(b"\x89PNG\r\n\x1a\nno picture")
    inputs["pictures"][1]["file"].unlink()

    assert answered(inputs) is None


TEXTS = st.text(max_size=40) | st.sampled_from(
    [
        "1st original 2nd result",
        "mine: a, b",
        "screenshot",
        "before / after",
        "[A] (word)",
        "」\x00",
    ]
)


@given(
    st.sampled_from(["Turn this photo into [A]", "A (word) and ___", "A cat"]) | TEXTS,
    st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=4)), min_size=1, max_size=4),
)
@settings(deadline=None)
def test_any_answer_keeps_to_the_rules(prompt: str, posts: list[tuple[str, list[str]]]) -> None:
    """Known numbers, each picture in one place, and the same answer every time."""
    said = tuple(
        (n - 1, f"author {n % 2}", text, list(alts)) for n, (text, alts) in enumerate(posts)
    )
    inputs = request(Path("unused"), prompt, said, TARGET)
    samples = answered(inputs)

    assert samples == answered(inputs)
    for some in samples or ():
        assert set(some.posts) <= set(range(len(posts)))
    shown = [n for some in samples or () for n in some.outputs]
    taken = [n for some in samples or () for n in {*some.inputs}]
    assert not set(shown) & set(taken)
    assert all(times == 1 for times in Counter(shown).values())
    assert {*shown, *taken} <= set(range(1, sum(len(alts) for _, alts in posts) + 1))


@pytest.mark.parametrize(
    "seed",
    [
        "my ",
        "1, ",
        "the first ",
        "before / ",
        "mine: a, ",
        "[A",
        "　",
        "\n",
        "x/",
        "我的",
        "https://x ",
    ],
)
def test_hostile_texts_take_no_time(seed: str) -> None:
    """Texts of one seed, far longer than any post, in processor time."""
    text = (seed * 4000)[:8000]
    prompt = "Turn this photo into (object) and the word (word)"
    said = tuple((n - 1, MIRA, text, [text, text]) for n in range(3))
    inputs = request(Path("unused"), prompt, said, TARGET)
    before = time.process_time()

    roles(inputs)

    assert time.process_time() - before < 2


def test_a_sample_takes_milliseconds(tmp_path: Path) -> None:
    """Four pictures of an ordinary size, in processor time; the best of three."""
    prompt = "Make this photo a night scene"
    large = [scene().resize((1024, 768)), scene(NIGHT).resize((1024, 768))]
    posts = post(prompt, *large), reply(TOMO, "mine", *large)
    inputs = request(tmp_path, prompt, posts, TARGET)
    taken = []
    for _ in range(3):
        before = time.process_time()
        json.loads(str(roles(inputs)))
        taken.append(time.process_time() - before)

    assert min(taken) < 0.25
