"""Names and digests of samples."""

from __future__ import annotations

import hashlib
import json

from echo_hf.samples.sample import ALPHABET, sample_digest, sample_id, sample_ids


def test_the_name_is_the_digest_of_the_sources_in_base_57() -> None:
    """The letters are the lowest 22 base-57 digits of the sources' sha256, lowest first."""
    name = sample_id("https://example.org/1", 12, 0)
    value = sum(ALPHABET.index(letter) * 57**place for place, letter in enumerate(name))
    text = json.dumps(["https://example.org/1", 12, 0])
    digest = int(hashlib.sha256(text.encode()).hexdigest(), 16)

    assert len(name) == 22
    assert value == digest % 57**22


def test_the_alphabet_has_no_letters_that_look_alike() -> None:
    """The 57 letters leave out 0 and O, 1, I and l."""
    assert len(set(ALPHABET)) == 57
    assert not set("0O1Il") & set(ALPHABET)


def test_every_source_counts() -> None:
    """Another post, place or number is another sample."""
    names = {
        sample_id(*sources) for sources in (("a", 0, 0), ("b", 0, 0), ("a", 1, 0), ("a", 0, 1))
    }

    assert len(names) == 4


def test_the_first_prompt_of_a_post_has_the_name_of_the_post() -> None:
    """The earliest span comes first; the others are counted within their paragraph."""
    text = "zero\none one one"
    names = sample_ids("u", text, [-1, 9, 5, 0, -1])

    assert names == [
        sample_id("u", -1, 0),
        sample_id("u", 5, 1),
        sample_id("u", 5, 0),
        sample_id("u"),
        sample_id("u", -1, 1),
    ]


def test_a_lone_prompt_has_one_name_wherever_it_stands() -> None:
    """Where a model finds the only prompt of a post does not count."""
    assert sample_ids("u", "a\nb", [2]) == sample_ids("u", "a\nb", [-1]) == [sample_id("u")]


def test_the_digest_covers_prompt_and_inputs_in_order() -> None:
    """A changed prompt, image or order of images is another task."""
    digests = {
        sample_digest(prompt, inputs)
        for prompt, inputs in (
            ("p", ["a", "b"]),
            ("p", ["b", "a"]),
            ("p", ["a"]),
            ("p", []),
            ("q", ["a", "b"]),
        )
    }

    assert len(digests) == 5
    assert sample_digest("p", ()) == hashlib.sha256(b'["p", []]').hexdigest()
