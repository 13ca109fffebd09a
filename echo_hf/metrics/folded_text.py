"""One spelling for texts that people read as the same."""

from __future__ import annotations

from unicodedata import category, normalize

MARKS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′‵`´ʼ‹›", "'"),
        **dict.fromkeys("“”„‟″‶«»〝〞〟", '"'),
        **dict.fromkeys("‐‒–—―−", "-"),
    }
)


def folded(text: str) -> str:
    r"""A text without what does not tell whether it is written right.

    Case, width, ligatures, kinds of quotation marks and of dashes are folded. Spaces and line
    breaks go: where a line ends is a matter of layout, and readers of pictures drop spaces by
    themselves.

    Args:
        text: Any text.

    Returns:
        The same for all that count as the same.

    Example:
        >>> folded("ＨＡＰＰＹ  “Birth\nday” ﬁsh")
        'happy"birthday"fish'
    """
    marked = text.translate(MARKS)
    # As Unicode defines caseless matching of compatible characters (3.13, D146).
    once = normalize("NFKC", normalize("NFD", marked).casefold())
    plain = normalize("NFKC", once.casefold()).translate(MARKS)
    # Once more, for accents that stood on a space and now stand on a letter.
    return normalize("NFKC", _without_spaces(plain))


def signs_of(text: str) -> frozenset[str]:
    """The letters and signs of a text, in the case in which they are written.

    What has to be read for `folded` texts to be compared: a reader that knows the letters of
    "STRASSE" does not know that of "Straße" for it.

    Args:
        text: Any text.

    Returns:
        Each once, with width, ligatures, kinds of quotation marks and of dashes folded.

    Example:
        >>> sorted(signs_of("ＡＡ a ﬁ–“"))
        ['"', '-', 'A', 'a', 'f', 'i']
    """
    plain = normalize("NFKC", text.translate(MARKS)).translate(MARKS)
    return frozenset(_without_spaces(plain))


def _without_spaces(text: str) -> str:
    return "".join(one for one in text if not (one.isspace() or category(one) == "Cf"))
