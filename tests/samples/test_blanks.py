"""Blanks of templates: which pieces of a prompt are some, and what completing them changes."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echo_hf.samples.blanks import (
    CANDIDATE,
    OPENING_MARK,
    CompletedPrompt,
    blank_name,
    complete_template,
    find_placeholders,
)

MARKS = "[]{}<>()（）【】_〇 \n:,\"'/!abK7猫🍓"
PROMPTS = st.text(alphabet=MARKS, max_size=60) | st.text(max_size=60)
# Letters that no placeholder below has.
PLAIN = st.text(alphabet="klmnop qrs.,\n", max_size=12).map(lambda text: text + " ")
BLANKS = ("[PET]", "<city>", "{hat}", "(object)", "【猫】", '{argument name="x" default="y"}')


@pytest.mark.parametrize(
    ("prompt", "blanks"),
    [
        ("A [COUNTRY NAME] made of [material]", ["[COUNTRY NAME]", "[material]"]),
        ("A window of <subject>, <art style>", ["<subject>", "<art style>"]),
        (
            'Poster of {argument name="city" default="Oslo"} in {season}',
            ['{argument name="city" default="Oslo"}', "{season}"],
        ),
        ("A stamp with (object) and the word (word)", ["(object)", "(word)"]),
        ("一盏【水果】形状的台灯，［颜色］墙面", ["【水果】", "［颜色］"]),
        ("If ___ were a ______, in bright colours", ["___", "______"]),
        ("〇〇が描いた絵", ["〇〇"]),
        ("A {{logo}} on ${material} with [[subject]]", ["{{logo}}", "${material}", "[[subject]]"]),
        ("A page stamped [{City}, {Country}]", ["{City}", "{Country}"]),
        ("A soft icon of [🍓] on [white / blue]", ["[🍓]", "[white / blue]"]),
        ("[PET] and [PET] again", ["[PET]", "[PET]"]),
        # A heading above a template is none of its blanks.
        ("[SCENE]: a [PET] in the rain", ["[PET]"]),
        ("[PET] on a bicycle\n[CITY] in the rain", ["[PET]", "[CITY]"]),
        ("一张（城市）的海报，写着（你的名字）", ["（城市）", "（你的名字）"]),
        ("a {argument} in [b]x[/b]", ["{argument}"]),
        (
            "Un cartel de (tu ciudad) con (insert your dish here)",
            ["(tu ciudad)", "(insert your dish here)"],
        ),
    ],
)
def test_each_notation_is_found_with_its_marks(prompt: str, blanks: list[str]) -> None:
    assert find_placeholders(prompt) == blanks


LONG = '{argument name="quote" default="' + "so it goes " * 19 + '!"}'


@pytest.mark.parametrize(
    ("prompt", "blanks"),
    [
        ("【】的海报，背景是【　】", ["【】", "【　】"]),
        ("画一只（）在海边，写着（　）", ["（）", "（　）"]),
        ("a [...] in the rain, a […] above, a [   ]", ["[...]", "[…]", "[   ]"]),
        ("a {} in the rain, a map of {}.", ["{}", "{}"]),
        ("a [] hat and a hat of (   ) in blue", ["[]", "(   )"]),
    ],
)
def test_marks_around_nothing_are_blanks(prompt: str, blanks: list[str]) -> None:
    assert find_placeholders(prompt) == blanks
    assert [blank_name(one) for one in blanks] == [""] * len(blanks)


@pytest.mark.parametrize(
    "blank",
    [
        LONG,
        '{argument name="a" default="it\'s [so]"}',
        r"{argument name=\"a\" default=\"b {c} d\"}",
    ],
)
def test_a_declared_blank_is_one_whatever_value_it_proposes(blank: str) -> None:
    assert find_placeholders(f"a sign: {blank}, in {{place}}") == [blank, "{place}"]


@pytest.mark.parametrize(
    "prompt",
    [
        "a fox (4k, sharp) by the sea (no text) and a lamp (PBR)",
        "three lights (red, green), a ratio of (16:9), a label (double happiness)",
        "颜色（Colors）和光线（柔和）",
        "see [this page](https://example.org/a) and ![fox](fox.png) and [1]",
        "<b>bold</b> <span style='color: red'>red</span> <br> <https://example.org> <3 you > me",
        "<scene>a fox</scene> and <lora:foxes:0.8>",
        "(；´д｀) ¯\\_(ツ)_/¯ >___< ^__^ T___T __init__ ___very bold___",
        "- [ ] sharp\n- [x] wide\n___\n",
        "a fox, [cat:dog:0.5], (fur:1.4)",
        "make it like [the attached image] and [Image 2], [参考图片]",
        "【风格】水彩\n【主体】一只猫\n",
        "[Style]: watercolour\n[Light]\nsoft, from the left\n",
        "if x<y and y>z",
        "\x1b[31mred\x1b[0m",
        '{"light": ["red", "blue"], "size": [4, 5], "deep": {"a": {"b": "c"}}, "none": []}',
        "{ color: 'red', size: 2 }",
        # Marks around nothing, in code.
        *("x = {}", "return {}", "main () {}", "class Fox {}", "foo() and bar(  )", "items: {}"),
        '{"a": {}, "b": [], "c": [...]}',
        "list[...] and [...](https://example.org)",
        "( ͡° ͜ʖ ͡°) ( ) ()",
        "(  ) yes\n(  ) no\n[] maybe",
        "if (x) {}; y",
    ],
)
def test_what_only_looks_like_a_blank_is_none(prompt: str) -> None:
    assert find_placeholders(prompt) == []


def test_a_blank_inside_a_string_of_json_is_one() -> None:
    prompt = json.dumps({"subject": "a [PET] in {city}", "colours": ["red", "<colour>"]}, indent=1)

    assert find_placeholders(prompt) == ["[PET]", "{city}", "<colour>"]


@pytest.mark.parametrize(
    ("placeholder", "name"),
    [
        ('{argument name="main colour" default="red"}', "main colour"),
        (r"{argument name=\"City\" default=\"Oslo\"}", "city"),
        ("[PET: any animal]", "pet"),
        ("【水果】", "水果"),
        ("____", ""),
    ],
)
def test_a_blank_has_a_name(placeholder: str, name: str) -> None:
    assert blank_name(placeholder) == name


@pytest.mark.parametrize(
    ("prompt", "piece", "expected"),
    [
        ("YOUR CITY at night", "YOUR CITY", "Oslo at night"),
        ("a map of CITY.", "CITY", "a map of Oslo."),
        ("a map of CITY_NAME", "CITY_NAME", "a map of Oslo"),
        ("a map of x__y", "__", "a map of xOsloy"),
    ],
)
def test_names_in_capitals_and_runs_of_underscores_can_be_filled(
    prompt: str, piece: str, expected: str
) -> None:
    assert find_placeholders(prompt) == []
    assert complete_template(prompt, [(piece, "Oslo")]).prompt == expected


@pytest.mark.parametrize(
    ("prompt", "piece"),
    [
        ("a fox in the snow", "fox"),
        ("a neon sign that says OPEN LATE", "OPEN LATE"),
        ("a poster: I LOVE YOUR CITY SO MUCH", "YOUR CITY"),
        ("CITY_NAME_LONG", "CITY_NAME"),
        ("a lamp (PBR) on [this](https://example.org)", "(PBR)"),
        ("[PET]: a hen", "[PET]"),
        ("a [YOUR CITY] map", "YOUR CITY"),
        *(("a category ___ [PET]", one) for one in ("[DOG]", "cat", "__", "PET", "")),
    ],
)
def test_what_is_no_blank_cannot_be_replaced(prompt: str, piece: str) -> None:
    done = complete_template(prompt, [(piece, "x")])

    assert (done.prompt, done.unknown, done.filled) == (prompt, (piece,), ())


@given(st.from_regex(CANDIDATE))
def test_what_has_the_form_of_a_blank_has_its_beginning(prompt: str) -> None:
    assert OPENING_MARK.search(prompt)


@given(PROMPTS)
def test_what_is_found_can_be_filled(prompt: str) -> None:
    found = find_placeholders(prompt)

    done = complete_template(prompt, [(one, one) for one in dict.fromkeys(found)])

    filled = tuple((one, one) for one in dict.fromkeys(found))
    assert done == CompletedPrompt(prompt, (), filled=filled)


@given(
    st.lists(st.tuples(PLAIN, st.sampled_from(BLANKS)), max_size=6),
    PLAIN,
    st.lists(st.tuples(st.sampled_from(BLANKS), st.text(max_size=6)), max_size=6),
)
@example([("k ", "[PET]"), (" ", "[PET]")], " m", [("[PET]", "[PET]"), ("[PET]", "")])
@example([("k ", "[PET]"), (" ", "[PET]"), (" ", "<city>")], " m", [("[PET]", "<city>")])
@example([("k ", "{hat}")], " m", [("{hat}", "a hen"), ("{hat}", "an egg")])
def test_literal_text_is_never_changed(
    pieces: Sequence[tuple[str, str]], end: str, fillings: Sequence[tuple[str, str]]
) -> None:
    values = {one: [value for blank, value in fillings if blank == one] for one in BLANKS}
    stand = [blank for _, blank in pieces]
    expected, seen = [], dict.fromkeys(BLANKS, 0)
    for plain, blank in pieces:
        given_values, place = values[blank], seen[blank]
        seen[blank] += 1
        if len(given_values) == 1:
            expected.append(plain + given_values[0])
        elif place < len(given_values):
            expected.append(plain + given_values[place])
        else:
            expected.append(plain + blank)

    done = complete_template("".join(plain + blank for plain, blank in pieces) + end, fillings)

    assert done.prompt == "".join(expected) + end
    assert set(done.unknown) == {blank for blank, _ in fillings if blank not in stand}
    assert Counter(done.filled) == Counter(
        (blank, value) for blank in BLANKS for value in values[blank][: stand.count(blank)]
    )
    assert set(done.surplus) == {
        blank for blank in set(stand) if stand.count(blank) < len(values[blank]) > 1
    }


SEEDS = ["[", "[a", "[a]", "{{a}}", "<a ", "((", "_", "【a】", "[a] ", "\n[A]", "【", "( ", "[ "]


@pytest.mark.parametrize("seed", [*SEEDS, "a {} ", '{argument a="'])
def test_a_hostile_prompt_takes_no_time(seed: str) -> None:
    prompt = (seed * 8000)[:8000]
    before = time.thread_time()

    complete_template(prompt, [(one, "x") for one in set(find_placeholders(prompt))])

    assert time.thread_time() - before < 5


def test_real_prompts(test_data: Path) -> None:
    """Of 100 prompts that people shared, those with a name in brackets; of others, hardly any.

    In brackets, but no blanks of a text: lists of JSON (3 prompts), and places of an image (3).
    """
    shared = json.loads((test_data / "posts/gpt4o_prompt_posts/cases.json").read_text())
    english = [case["prompt_en"] for case in shared]
    bracketed = {at for at, one in enumerate(english) if re.search(r"\[[^\]]+\]", one)}
    found = {at for at, one in enumerate(english) if find_placeholders(one)}
    written = [
        line.split("\t")[-1]
        for name in ("dpg_bench/prompts.tsv", "dsg1k/prompts.tsv", "geneval/generation_prompts.txt")
        for line in (test_data / "prompts" / name).read_text().splitlines()
    ]

    assert len(bracketed - found) <= 6
    assert len(found) == 35
    assert sum(bool(find_placeholders(one)) for one in written) <= 1
