"""Phone numbers among sizes, seeds, dates, prices and codes."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable

import pytest

from echo_hf.curate.personal_data import phones

CHANCE = random.Random(5)
SIZES = (512, 640, 720, 768, 800, 832, 900, 1024, 1080, 1152, 1216, 1344, 1440, 1536, 1920, 2048,
         2160, 3840)  # fmt: skip
DAYS = [datetime.date(1900, 1, 1) + datetime.timedelta(days=97 * number) for number in range(900)]
DATES = (
    "%Y-%m-%d", "%d-%m-%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y.%m.%d", "%d %m %Y", "%Y%m%d",
    "%d-%m-%Y 10:30", "%Y-%m-%dT10:30:45Z", "%Y-%m-%d_10-30-45", "%d/%m/%y",
)  # fmt: skip


def below(most: int) -> int:
    """A number by chance."""
    return CHANCE.randrange(most)


Numbers = Callable[[], str]
OTHERS: dict[str, Numbers] = {
    **{
        f"size {sign}": lambda sign=sign: sign.join(map(str, CHANCE.choices(SIZES, k=2)))
        for sign in ("x", " x ", "×", "*", ":", "/", ", ", " ", "-", " by ")
    },
    **{
        f"sizes {sign}": lambda sign=sign: sign.join(map(str, CHANCE.choices(SIZES, k=3)))
        for sign in ("x", "×", ", ", " ")
    },
    **{sign: lambda sign=sign: CHANCE.choice(DAYS).strftime(sign) for sign in DATES},
    "seed": lambda: f"seed {below(2**32)}",
    "long seed": lambda: f"--seed {below(2**63)} --ar 16:9 --v 6.1",
    "dollars": lambda: f"${below(10**7):,}.{below(100):02d}",
    "euros": lambda: f"{below(10**7):,}.{below(100):02d} €",
    "hex colour": lambda: f"#{below(16**6):06x} and #{below(16**6):06X}",
    "rgb": lambda: f"rgb({below(256)}, {below(256)}, {below(256)})",
    "years": lambda: f"{1000 + below(1000)}-{2000 + below(60)}",
    "pages": lambda: f"{below(999)}-{below(9999)}",
    "decimals": lambda: " ".join(f"{CHANCE.random():.{1 + below(4)}f}" for _ in range(4)),
    "place": lambda: f"{CHANCE.uniform(-90, 90):.6f}, {CHANCE.uniform(-180, 180):.6f}",
    "box": lambda: "[" + ", ".join(str(below(1500)) for _ in range(4)) + "]",
    "steps": lambda: f"steps {below(50)} cfg {below(20)}.5 denoise 0.{below(100)}",
    "time": lambda: f"{below(24):02d}:{below(60):02d}:{below(60):02d},{below(1000):03d}",
    "signed": lambda: " ".join(f"{below(200) - 100:+d}" for _ in range(5)),
    "list": lambda: ", ".join(str(below(1000)) for _ in range(2 + below(6))),
    "host": lambda: ".".join(str(below(256)) for _ in range(4)),
    "version": lambda: f"v{below(9)}.{below(30)}.{below(100)}",
    "post": lambda: f"https://x.com/i/status/{10**18 + below(10**18)}",
    "page": lambda: f"https://example.org/p?id={4_155_550_000 + below(9999)}",
    "identifier": lambda: f"{below(16**8):08x}-{below(16**4):04x}-{below(16**12):012x}",
    "file": lambda: f"IMG_{below(10**8):08d}.jpg IMG-20240102-WA{below(10**4):04d}",
    "book": lambda: f"ISBN 978-{below(10)}-{below(100):02d}-{below(10**6):06d}-{below(10)}",
    "card": lambda: " ".join(f"{below(10**4):04d}" for _ in range(4)),
}


def found(text: str) -> list[str]:
    """The numbers found, each once."""
    return sorted({text[start:end] for start, end in phones(text)})


@pytest.mark.parametrize("kind", OTHERS)
def test_other_numbers_are_no_phone_numbers(kind: str) -> None:
    """None in 300 of each kind, as they stand in prompts."""
    texts = [OTHERS[kind]() for _ in range(300)]
    assert [text for text in texts if found(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "0.313 0.1691 0.56 0.9", "0.8, 0.83, 0.1687, 0.2924", "168.202.228.236",
        "9b4a3398-1e1c-4930-9964-df6ead5005d3", "-76.037431 16.073499", "650-253-0000-1",
        "+95 -16 -53 -41 +12", "+62 -95 -55 -32 -31", "1310-1335", "310-1335",
        "650 -253 -1024",
    ],
)  # fmt: skip
def test_parts_of_other_numbers_are_no_phone_numbers(text: str) -> None:
    """Each holds digits that alone, or read as one, would be a valid number of some country."""
    assert found(text) == []


# Numbers that the regulators set aside for films, or of switchboards.
@pytest.mark.parametrize(
    "number",
    [
        "+1 650-253-0000", "+1 (650) 253-0000", "(650) 253-0000", "650-253-0000", "650.253.0000",
        "1-800-356-9377", "+44 20 7946 0958", "020 7946 0958", "+49 30 901820", "030 901820",
        "+33 1 23 45 67 89", "01 23 45 67 89", "+81 3-1234-5678", "03-1234-5678", "+16502530000",
        "+91 98765 43210", "+55 11 91234-5678", "+61 412 345 678", "+39 312 345 6789",
    ],
)  # fmt: skip
def test_phone_numbers(number: str) -> None:
    """With a country code from anywhere; without one where a zero or marks say that it is one."""
    assert found(f"call {number}, now") == [number]
    assert found(f"tel:{number}") == [number]


@pytest.mark.parametrize("number", ["6502530000", "98765 43210", "138 0013 8000", "0412345678"])
def test_numbers_that_may_be_anything_are_left(number: str) -> None:
    """Seeds look the same."""
    assert found(number) == []


def test_a_chat_by_its_address() -> None:
    """The number in it, unlike numbers in other addresses."""
    assert found("https://wa.me/4930901820?text=hi") == ["4930901820"]
