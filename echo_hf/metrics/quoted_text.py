"""Which words a prompt puts in quotation marks: the text that a picture is meant to show."""

from __future__ import annotations

import re

from echo_hf.metrics.folded_text import folded

# What opens is followed by what may close it. A mark inside others belongs to their text.
PAIRS = {
    "“": "”“",
    "„": "“”",
    "”": "”",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "「": "」",
    "『": "』",
    "《": "》",
    "〝": "〞〟",
    "‘": "’",
    "‚": "‘’",
    "'": "'",
    '"': '"',
    "＂": "＂",
}
SINGLE = "‘‚'"
# What closes only after that is no quotation; and a prompt of opening marks takes no longer.
MOST_LETTERS = 1000
# Words that begin with an apostrophe, and decades, open no quotation.
ELISIONS = r"(?:\d\ds?|n|em|til|tis|twas|cause|bout|round|cuz)\b"


def _pattern(opening: str, closings: str) -> str:
    """One kind of quotation, on lines with no empty one between them."""
    ends = f"[{re.escape(closings)}]"
    times = f"{{1,{MOST_LETTERS}}}"
    inside = rf"(?:(?!{ends}|\n[ \t]*\n).)"
    if opening not in SINGLE:
        # Between digits and marks stand inches and seconds.
        before = r"(?<!\d)" if opening == '"' else ""
        return rf"{before}{opening}({inside}{times}){ends}"
    # An apostrophe has letters on both sides, or opens what is no quotation.
    apostrophe = rf"(?:{ends}(?=\w))"
    return rf"(?<!\w){opening}(?!\s|{ELISIONS})((?:{inside}|{apostrophe}){times}?){ends}(?!\w)"


_QUOTED = re.compile("|".join(_pattern(*pair) for pair in PAIRS.items()), re.DOTALL | re.IGNORECASE)


def quoted(prompt: str) -> tuple[str, ...]:
    r"""The strings in quotation marks, each once.

    Straight and curly marks, single and double, guillemets and the marks of Chinese and Japanese
    count; apostrophes and inches do not. Of marks within marks the outer ones count.

    Args:
        prompt: The text of a prompt.

    Returns:
        The strings in order, without what surrounds them; none without a letter or a digit.

    Example:
        >>> quoted("Don't change the 24\" sign: write “Fish & Chips”, below it 'Today's catch'")
        ('Fish & Chips', "Today's catch")
    """
    found: dict[str, str] = {}
    for match in _QUOTED.finditer(prompt):
        text = next(group for group in match.groups() if group is not None).strip()
        if any(letter.isalnum() for letter in text):
            found.setdefault(folded(text), text)
    return tuple(found.values())
