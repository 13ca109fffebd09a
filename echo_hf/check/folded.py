"""How texts are compared where their spelling does not matter."""

from __future__ import annotations

from echo_hf.context.spans import squeezed


def folded(text: str) -> str:
    """A text as it is compared where neither case nor white space counts.

    Example:
        >>> folded(" Colour  cast")
        'colour cast'
    """
    return squeezed(text).casefold()
