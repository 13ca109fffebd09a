"""The files of systems that echo-hf brings: each can be read and made into its system."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echo_hf.config.systems import read_system, shipped_systems
from echo_hf.errors import MissingExtraError
from echo_hf.systems.registry import adapter_needs, make_system

FILES = list(shipped_systems())
# As the figures of the paper call them.
PUBLISHED = {
    "4o Image Gen",
    "Anole",
    "Bagel",
    "Bagel-Think",
    "Flux Kontext",
    "Gemini 2.0 Flash",
    "LLM+Diffusion",
    "Nano Banana",
}
# Whose models cannot be had any more, by the pages of their makers.
GONE = {"4o Image Gen", "Gemini 2.0 Flash", "LLM+Diffusion"}


def test_all_of_the_paper_are_there_and_some_of_today() -> None:
    """Each of the paper's eight is one file's, or what stands in for it; six more are current."""
    systems = [read_system(file) for file in FILES]
    stand_for = [one.stands_for for one in systems if one.status in ("as_published", "substitute")]
    assert sorted(filter(None, stand_for)) == sorted(PUBLISHED)
    assert sum(one.status == "current" for one in systems) >= 6


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_system_can_be_made(file: Path) -> None:
    """Or says which extra it needs; its signature can be written down, without a model."""
    config = read_system(file)
    if adapter_needs()[config.adapter].missing:
        with pytest.raises(MissingExtraError, match=config.name):
            make_system(config)
        return
    with make_system(config) as system:
        json.dumps(system.signature())
        assert system.concurrency >= 1
        assert system.determinism


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_system_says_what_it_stands_for(file: Path) -> None:
    """By the paper's own name; what is gone is never called the paper's own."""
    config = read_system(file)
    assert config.name == file.stem
    assert config.stands_for is None or config.stands_for in PUBLISHED
    if config.stands_for is not None:
        assert config.note
    if config.stands_for in GONE:
        assert config.status in ("substitute", "replay")


def test_shipped_systems_have_names_of_their_own() -> None:
    """So that one config can take them all."""
    names = [read_system(file).name for file in FILES]
    assert len(set(names)) == len(names)
