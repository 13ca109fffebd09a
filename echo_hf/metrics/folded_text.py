"""One spelling for texts that people read as the same."""

from __future__ import annotations

from unicodedata import category, normalize

MARKS = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′‵`´ʼ‹›", "'"),
        **dict.fromkeys("“”„‟″‶«»〝〞〟", '"'),
    }
)


def folded(text: str) -> str:
    r"""A text without what does not tell whether it is written right.

    Case, width, ligatures and kinds of quotation marks are folded. Spaces and line breaks go:
    where a line ends is a matter of layout, and readers of pictures drop spaces by themselves.

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
    return "".join(one for one in plain if not (one.isspace() or category(one) == "Cf"))
