"""Values that people put into the blanks of templates, in what they say and describe."""

from __future__ import annotations

import pytest

from echo_hf.engines.rules.images import Blank, agrees, listings, named, read_template, value_of
from echo_hf.samples.blanks import placeholders

OBJECT, WORD = Blank("(object)", "object", False), Blank("(word)", "word", False)
ANIMAL, JOB = Blank("[ANIMAL]", "animal", True), Blank("[JOB]", "job", True)
FRUIT, COLOUR = Blank("【水果】", "水果", False), Blank("【颜色】", "颜色", False)


@pytest.mark.parametrize(
    ("said", "blanks", "values"),
    [
        ("first one: a kettle, TEA", (OBJECT, WORD), ("a kettle", "TEA")),
        ("a pear, and the word is MELLOW", (OBJECT, WORD), ("a pear", "MELLOW")),
        (
            "an anchor / HARBOUR. wrong the first time, then right",
            (OBJECT, WORD),
            (
                "an anchor",
                "HARBOUR",
            ),
        ),
        ("word: TEA / object: kettle", (OBJECT, WORD), ("kettle", "TEA")),
        ("我的：柠檬，浅蓝色", (FRUIT, COLOUR), ("柠檬", "浅蓝色")),
        ("@mira_draws 草莓，奶油色🍓", (FRUIT, COLOUR), ("草莓", "奶油色")),
        ("I did the red panda and a chef, came out great", (ANIMAL, JOB), ("red panda", "chef")),
        ("mine: a turtle postman", (ANIMAL, JOB), ("turtle", "postman")),
        ("🦊 + 🥐", (ANIMAL, JOB), ("🦊", "🥐")),
        ("job = baker; animal = fox", (ANIMAL, JOB), ("fox", "baker")),
        ("el mío: zorro, panadero", (ANIMAL, JOB), ("zorro", "panadero")),
        ("went with an otter!", (ANIMAL,), ("otter",)),
        ("love this, thanks", (ANIMAL, JOB), None),
        ("a polar bear", (ANIMAL, JOB), None),
        ("光影太真实了，想买实物", (FRUIT, COLOUR), None),
        ("so cute!", (ANIMAL,), None),
        ("😍🔥", (ANIMAL,), None),
        ("lemon, pear, fig", (ANIMAL,), None),
    ],
)
def test_a_sentence_may_list_a_value_for_each_blank(
    said: str, blanks: tuple[Blank, ...], values: tuple[str, ...] | None
) -> None:
    """In their order or by name; a remark lists none."""
    found = [listing.values for listing in listings(said, blanks)]

    assert found == ([values] if values else [])


def test_names_may_stand_in_several_sentences() -> None:
    """A blank that is given two values has none."""
    said = "Animal: fox\nJob: baker\nJob: judge"

    assert named(said, (ANIMAL, JOB)) == {ANIMAL: "fox"}


def test_an_article_is_left_out_where_the_prompt_has_one() -> None:
    """It stays where the prompt has none."""
    assert (value_of("an otter", ANIMAL), value_of("an otter", OBJECT)) == ("otter", "an otter")


@pytest.mark.parametrize(
    ("template", "text", "values"),
    [
        (
            "A two-colour stamp showing (object), engraved, the word (word) in capitals",
            "A two-colour stamp showing an owl, engraved, the word HOOT in capitals",
            ["an owl", "HOOT"],
        ),
        ("A stamp showing (object), the word (word) below", "A kettle and the word TEA", ["TEA"]),
        ("a [ANIMAL] postman delivering letters", "mine is an otter postman with a bag", ["otter"]),
        ("A knitted <animal> playing the <tool>", "a knitted fox playing a drum", ["fox", "drum"]),
        (
            "一盏【水果】形状的台灯，【颜色】墙面",
            "一盏草莓形状的台灯，奶油色墙面",
            ["草莓", "奶油色"],
        ),
        ("Poster for [CITY] in [SEASON]", "Poster for Oslo in winter", ["Oslo", "winter"]),
        ("___ riding a ___", "a cat riding a toaster", ["a cat", "toaster"]),
        ("A [FRUIT] shaped lamp", "so pretty", []),
    ],
)
def test_a_text_may_follow_the_words_of_the_template(
    template: str, text: str, values: list[str]
) -> None:
    """What stands in the places of the blanks is what was put in."""
    read = read_template(template, placeholders(template))

    assert read is not None
    assert list(read.followed_by(text).values()) == values


def test_a_template_proposes_values() -> None:
    """A default, or a pictograph in the blank."""
    template = 'A [🍔] icon in {argument name="tone" default="warm red"} for [NAME]'
    read = read_template(template, placeholders(template))

    assert read is not None
    assert [read.defaults.get(blank) for blank in read.blanks] == ["🍔", "warm red", None]


def test_a_blank_with_a_name_is_one_wherever_it_stands() -> None:
    """One without a name is another at each place."""
    for template, count in (("[PET] and [PET]", 1), ("___ and ___", 2), ("no blank", 0)):
        read = read_template(template, placeholders(template))
        assert len(read.blanks if read else []) == count


@pytest.mark.parametrize(
    ("alt_text", "values", "agreed"),
    [
        ("A dark red stamp with a kettle and the word TEA", ["a kettle", "TEA"], True),
        ("Two cats asleep on a sofa", ["fox", "baker"], False),
        ("A row of foxes in the snow", ["fox"], True),
        ("A stamp", ["a kettle"], True),
        ("一只猫在沙发上", ["fox"], True),
    ],
)
def test_a_description_may_contradict(alt_text: str, values: list[str], agreed: bool) -> None:
    """One that says enough and has no word of any value speaks of something else."""
    assert agrees(alt_text, values) == agreed
