"""Tell by its colours which of several pictures is put together from the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echo_hf.engines.rules.multimodal.looks import Array, Look

LEVELS = 6
MARGIN = 0.1
FEWEST = 3


def blend_among(looks: Sequence[Look | None]) -> int | None:
    """Finds the picture that has the colours of each of the others.

    Args:
        looks: Three or more pictures.

    Returns:
        Its place in the list; null when some cannot be read, or none clearly stands out.
    """
    shares = [_palette(look) for look in looks if look]
    if len(shares) < max(FEWEST, len(looks)):
        return None
    common = [min(_common(one, other) for other in shares if other is not one) for one in shares]
    second, best = sorted(common)[-2:]
    return common.index(best) if best - second > MARGIN else None


def _palette(look: Look) -> Array:
    levels = (look.rgb * (LEVELS / 256)).astype(np.int64).reshape(-1, 3)
    codes = levels @ np.array([LEVELS * LEVELS, LEVELS, 1])
    counts: Array = np.bincount(codes, minlength=LEVELS**3).astype(np.float32)
    return counts / np.float32(codes.size)


def _common(one: Array, other: Array) -> float:
    return float(np.minimum(one, other).sum())
