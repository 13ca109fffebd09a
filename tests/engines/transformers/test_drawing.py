"""Fair draws, and answers that cannot leave their schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, Field

from echo_hf.engines.transformers_model import Grammar, Noise, PreparedRequest, sampling_processors
from tests.stages_for_tests import Color, request
from tests.tiny_models import REASON, byte_tokenizer

pytestmark = pytest.mark.models
torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("transformers", reason=REASON)

SCORES = [0.0, 1.0, 2.0, -1.0, 0.5, -float("inf")]
DRAWS = 20_000


class Size(BaseModel):
    """Two bounded numbers."""

    width: Annotated[int, Field(ge=1, le=99)]
    height: Annotated[int, Field(ge=1, le=99)]


class Verdict(BaseModel):
    """An answer with nested and optional parts."""

    kinds: Annotated[list[Literal["crop", "colour"]], Field(max_length=3)]
    score: Annotated[int, Field(ge=1, le=5)]
    size: Size | None


def _chances(temperature: float) -> Any:
    weights = np.exp(np.array(SCORES) / temperature)
    return weights / weights.sum()


def _drawn(temperature: float, top_p: float) -> Any:
    processors, tokens = sampling_processors([7], temperature, top_p, "cpu"), []
    for _ in range(DRAWS):
        scores = torch.tensor([SCORES])
        for processor in processors:
            scores = processor(None, scores)
        tokens.append(int(scores.argmax()))
    return np.bincount(tokens, minlength=len(SCORES)) / DRAWS


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_have_the_chances_of_the_softmax(temperature: float) -> None:
    """Within five standard errors of exp(score / temperature), normalised; ruled out is never."""
    expected = _chances(temperature)
    error = np.sqrt(expected * (1 - expected) / DRAWS)
    assert (np.abs(_drawn(temperature, 1.0) - expected) <= 5 * error).all()


def test_only_the_nucleus_is_drawn_from() -> None:
    """The two likeliest make up 0.7 together, not one alone: they are drawn, in proportion."""
    chances = _chances(1.0)
    assert chances[2] < 0.7 < chances[2] + chances[1]
    seen, share = _drawn(1.0, 0.7), chances[1] / (chances[1] + chances[2])
    assert seen[[0, 3, 4, 5]].tolist() == [0, 0, 0, 0]
    assert seen[1] == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / DRAWS))


def test_without_temperature_nothing_is_drawn() -> None:
    """The scores stay what they are."""
    assert sampling_processors([1, 2], 0.0, 0.5, "cpu") == []


def test_a_rows_draws_do_not_depend_on_its_neighbours() -> None:
    """Seed by seed the noise is the same alone, together, and in another order."""
    rows = torch.zeros(3, 50)
    together = Noise.seeded([1, 2, 3], "cpu")(None, rows)
    turned = Noise.seeded([3, 1, 2], "cpu")(None, rows)
    alone = Noise.seeded([2], "cpu")(None, rows[:1])
    assert torch.equal(together[[2, 0, 1]], turned)
    assert torch.equal(together[1:2], alone)
    assert not torch.equal(together[0], together[1])


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """One token a byte, and the special ones."""
    pytest.importorskip("xgrammar", reason=REASON)
    return byte_tokenizer()


def _babbled(tokenizer: Any, answers: Sequence[type[BaseModel] | None], seed: int) -> list[str]:
    """What a model without any sense says: each allowed token is as likely as the next."""
    questions = [
        PreparedRequest(replace(request("red"), answer=answer), "", ()) for answer in answers
    ]
    stop = tokenizer.eos_token_id
    processors = Grammar(tokenizer, len(tokenizer), [stop]).enforced(questions)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.zeros(len(answers), 0, dtype=torch.long)
    while rows.shape[1] < 400 and not (rows == stop).any(dim=1).all():
        scores = torch.zeros(len(answers), len(tokenizer))
        for processor in processors:
            scores = processor(rows, scores)
        drawn_now = torch.multinomial(scores.softmax(-1), 1, generator=generator)
        ended = (rows == stop).any(dim=1, keepdim=True)
        rows = torch.cat([rows, torch.where(ended, tokenizer.pad_token_id, drawn_now)], dim=1)
    return [tokenizer.decode(row, skip_special_tokens=True) for row in rows]


@pytest.mark.parametrize("seed", range(10))
def test_whatever_is_drawn_fits_the_schema(tokenizer: Any, seed: int) -> None:
    """In one batch of different schemas each answer can be read by its own."""
    answers = [Verdict, Size, Verdict, Size]
    for answer, text in zip(answers, _babbled(tokenizer, answers, seed), strict=True):
        read = answer.model_validate_json(text)
        assert set(read.model_dump()) == set(answer.model_fields)
        assert "\n" not in text


def test_free_text_may_say_anything_that_json_can(tokenizer: Any) -> None:
    """Quotation marks and line breaks as escapes, and never a raw control character."""
    said = "".join(_babbled(tokenizer, [Color] * 40, 0))
    assert '\\"' in said
    assert "\\n" in said
    assert not {character for character in said if character < " "}


def test_a_plain_text_answer_is_held_to_nothing(tokenizer: Any) -> None:
    """No schema, no processor: every byte may be said."""
    grammar = Grammar(tokenizer, len(tokenizer), [tokenizer.eos_token_id])
    plain = PreparedRequest(replace(request("red"), answer=None), "", ())
    assert grammar.enforced([plain, plain]) == []
