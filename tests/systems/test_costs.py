"""What an output costs."""

from __future__ import annotations

import pytest

from echo_hf.config.systems import Price
from echo_hf.systems.plan import Billed, added, cost_usd

DAY = "2026-11-21"
BILLED = Billed(text_in=200, image_in=1000, text_out=50, image_out=4000, images=1)


def _price(**dollars: float) -> Price:
    return Price.model_validate({**dollars, "as_of": DAY})


def test_each_kind_of_token_has_its_price() -> None:
    """By hand: (200 x 5 + 1000 x 8 + 50 x 10 + 4000 x 30) / 1 000 000."""
    price = _price(text_in=5, image_in=8, text_out=10, image_out=30)
    assert cost_usd(price, BILLED) == pytest.approx(0.1295)


def test_a_price_for_an_image_stands_for_all_of_it() -> None:
    """Whatever tokens it took; without an image nothing is due."""
    price = _price(usd_per_image=0.04, text_in=5)
    assert cost_usd(price, BILLED) == 0.04
    assert cost_usd(price, Billed(images=0)) == 0.0


@pytest.mark.parametrize("missing", ["text_in", "image_in", "text_out", "image_out"])
def test_one_unknown_makes_all_unknown(missing: str) -> None:
    """Whether the count or the price is missing."""
    dollars = {"text_in": 5.0, "image_in": 8.0, "text_out": 10.0, "image_out": 30.0}
    counts = {"text_in": 200, "image_in": 1000, "text_out": 50, "image_out": 4000}
    without_price = _price(**{name: one for name, one in dollars.items() if name != missing})
    without_count = Billed(**{name: one for name, one in counts.items() if name != missing})
    assert cost_usd(without_price, Billed(**counts)) is None
    assert cost_usd(_price(**dollars), without_count) is None


def test_what_was_not_used_needs_no_price() -> None:
    """And what is free needs no count."""
    billed = Billed(text_in=200, image_in=0, text_out=0, image_out=4000)
    assert cost_usd(_price(text_in=5, image_out=30), billed) == pytest.approx(0.121)
    free = _price(text_in=0, image_in=0, text_out=0, image_out=30)
    assert cost_usd(free, Billed(image_out=1000)) == pytest.approx(0.03)


def test_without_a_price_nothing_is_known() -> None:
    """Neither for nothing nor for much."""
    assert cost_usd(None, BILLED) is None


def test_sums_of_costs_are_known_when_all_are() -> None:
    """None counts as no zero."""
    assert added(0.25, 0.5) == 0.75
    assert added(0.25, None) is None
