"""Where a ViT of transformers keeps the parts that keys are made of: the one file that knows.

Version 5.9 of transformers moved them: what was `encoder.layer[i].attention.attention.key` is
`layers[i].attention.k_proj` since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def blocks_of(model: Any) -> Sequence[Any]:
    """The blocks of a ViT, in the order in which they are run.

    Args:
        model: A `transformers.ViTModel` of any version from 5.0.

    Returns:
        The blocks; each takes hidden states and gives the next.
    """
    blocks: Sequence[Any] = model.encoder.layer if hasattr(model, "encoder") else model.layers
    return blocks


def key_projection(block: Any) -> Any:
    """The layer of a block that makes keys, those of all heads side by side.

    Args:
        block: One of `blocks_of`.

    Returns:
        The linear layer; it takes the block's normalised hidden states.
    """
    attention = block.attention
    return attention.k_proj if hasattr(attention, "k_proj") else attention.attention.key
