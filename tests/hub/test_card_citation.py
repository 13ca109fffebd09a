"""The citation is BibTeX, whatever the target is called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.sections import Target
from echo_hf.hub.card_sections import bibtex, citation_text
from echo_hf.hub.facts import ReleaseFacts
from tests.markdown_for_tests import tokens


def blocks(text: str) -> list[str]:
    """The contents of the fenced blocks of a page."""
    return [token.content for token in tokens(text) if token.type == "fence"]


def balanced(entry: str) -> bool:
    """Whether braces that are not escaped open and close like brackets."""
    depth, plain = 0, entry.replace("\\\\", "").replace("\\{", "").replace("\\}", "")
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


def test_the_paper_is_cited_with_all_its_authors(facts: ReleaseFacts) -> None:
    """The ten authors, the title and the venue of the paper that the method comes from."""
    paper, _ = blocks(citation_text(facts))
    assert "Constantly Improving Image Models Need Constantly Improving Benchmarks" in paper
    assert paper.count(" and ") + paper.count(" and\n") == 9
    assert "forum?id=nOcy5NvNI1" in paper
    assert balanced(paper)


def test_the_dataset_is_cited_by_what_is_known(facts: ReleaseFacts) -> None:
    """Target, revision and address; that nobody named its makers is said beside it."""
    _, dataset = blocks(citation_text(replace(facts, repository="org/echo_1")))
    assert dataset.startswith("@misc{echo_pixelbloom_2025_03,")
    assert "{ECHO benchmark: Pixelbloom}" in dataset
    assert "{Hugging Face dataset, org/echo\\_1}" in dataset
    assert "{Revision pixelbloom-2025-03}" in dataset
    assert "is not stated in its config" in citation_text(facts)


def test_the_citation_of_the_config_stands_in_its_place(facts: ReleaseFacts) -> None:
    """What the config gives is shown as it is, even with a fence in it."""
    given_text = "@misc{a,\n  note = {```}\n}"
    text = citation_text(replace(facts, citation=given_text))
    assert blocks(text)[1] == given_text + "\n"
    assert "is not stated" not in text


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30))
def test_no_name_opens_or_closes_a_brace(name: str) -> None:
    """Any name is one balanced value on one line, without a fence."""
    said = bibtex(name)
    assert balanced(said)
    assert "\n" not in said
    assert "`" not in said


@pytest.mark.parametrize("name", ["```", "}\n```\n# h", "\\", "{", "%"])
def test_a_hostile_target_stays_in_its_block(facts: ReleaseFacts, name: str) -> None:
    """The page has its two blocks and no other, and the entry keeps its four lines."""
    target = Target.model_construct(name=name, developer="d", released=None)
    found = blocks(citation_text(replace(facts, target=target)))
    assert len(found) == 2
    assert len(found[1].splitlines()) == 5
    assert balanced(found[1])
