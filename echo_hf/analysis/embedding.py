"""Sentence embeddings of prompts, by a model that the config names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echo_hf.analysis.options import EmbeddingOptions
from echo_hf.engines.checkpoint import Checkpoint, find_checkpoint
from echo_hf.metrics.extras import check_extra
from echo_hf.metrics.result import versions_of

EXTRA = "analysis-models"
PACKAGES = ("torch", "transformers", "sentence_transformers")


@dataclass(frozen=True)
class LoadedEncoder:
    """A sentence-embedding model.

    Attributes:
        model: Of sentence-transformers.
        checkpoint: Which weights they are.
        batch_size: Prompts at once.
    """

    model: Any
    checkpoint: Checkpoint
    batch_size: int

    def embed(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds prompts.

        Args:
            prompts: The prompts.

        Returns:
            Array [prompt, dimension], each row of length 1.
        """
        given: NDArray[np.float32] = self.model.encode(
            list(prompts),
            batch_size=self.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return given.reshape(len(prompts), -1)

    def cut(self, prompts: Sequence[str]) -> int:
        """How many prompts are longer than the model is shown."""
        longest = self.model.max_seq_length
        tokens = self.model.tokenizer(list(prompts), verbose=False)["input_ids"] if prompts else []
        return sum(len(one) > longest for one in tokens)

    def definition(self) -> dict[str, Any]:
        """Model, pooling, and how much of a prompt it is shown."""
        pooling = [one.get_config_dict() for one in self.model if hasattr(one, "pooling_mode")]
        return {
            "model": self.checkpoint.name,
            "revision": self.checkpoint.revision,
            "pooling": pooling[0].get("pooling_mode") if pooling else None,
            "normalized": True,
            "longest": self.model.max_seq_length,
            **versions_of("sentence-transformers", "transformers", "torch"),
        }


def load_encoder(options: EmbeddingOptions) -> LoadedEncoder:
    """Loads a model with the pooling that its files state, the mean over tokens where none does.

    Args:
        options: Which one, and where to.

    Returns:
        The model.

    Raises:
        MissingExtraError: torch, transformers or sentence-transformers is not installed.
        EngineError: There is no such model, or the Hub is out of reach.
        Exception: Whatever the files or the memory are short of.
    """
    check_extra("the map of prompts", EXTRA, PACKAGES)
    from sentence_transformers import SentenceTransformer

    checkpoint = find_checkpoint(options.model, options.revision)
    model = SentenceTransformer(
        checkpoint.source,
        revision=checkpoint.commit,
        device=options.device,
        trust_remote_code=False,
        model_kwargs={"use_safetensors": True},
    )
    model.max_seq_length = min(model.max_seq_length or options.longest, options.longest)
    return LoadedEncoder(model, checkpoint, options.batch_size)
