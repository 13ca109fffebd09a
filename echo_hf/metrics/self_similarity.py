"""Run a ViT over the pictures of samples, each picture once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from echo_hf.metrics.similarity_cache import SimilarityCache
from echo_hf.metrics.squashed import Squashed
from echo_hf.metrics.vit_keys import Similarity, self_similarities
from echo_hf.metrics.vit_loading import LoadedVit, VitOptions, load_vit


class SelfSimilarities:
    """The self-similarities of pictures, from a ViT that is loaded when it is first needed.

    Args:
        options: Which ViT, and which keys.
        batch_size: How many pictures the ViT is given at once, at most.
        cache: Shares the ViT, and keeps what it sees in inputs; nothing when null.
    """

    def __init__(
        self, options: VitOptions, *, batch_size: int, cache: SimilarityCache | None
    ) -> None:
        self._options = options
        self._batch_size = batch_size
        self._cache = cache
        self._vit: LoadedVit | None = None
        self._definition: Mapping[str, Any] | None = None
        self.forwards = 0

    def __getstate__(self) -> dict[str, Any]:
        """Without weights, which another process has no use for, or its own."""
        return {**vars(self), "_vit": None}

    @property
    def definition(self) -> Mapping[str, Any]:
        """What of the ViT and of its surroundings decides numbers; it is loaded to know."""
        return self._definition or self.load().definition

    def load(self) -> LoadedVit:
        """The ViT, loaded the first time.

        Returns:
            The ViT.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            ScoreError: It cannot be loaded as the options say.
        """
        if self._vit is None:
            self._vit = self._loaded()
            self._definition = self._vit.definition
        return self._vit

    def of(
        self, inputs: Iterable[Squashed], outputs: Iterable[Squashed]
    ) -> Mapping[bytes, Similarity]:
        """The self-similarities of pictures, equal ones being looked at once.

        Args:
            inputs: Are looked up in the cache, and kept there.
            outputs: Are looked up only.

        Returns:
            Array [token, token] by the digest of a picture.
        """
        vit = self.load()
        own = {one.digest: one for one in inputs}
        pictures = {**own, **{one.digest: one for one in outputs}}
        found = self._kept(vit.key, pictures)
        new = [one for one in pictures.values() if one.digest not in found]
        for first in range(0, len(new), self._batch_size):
            found.update(self._looked_at(vit, new[first : first + self._batch_size]))
        if self._cache is not None:
            for digest in own:
                self._cache.keep((vit.key, digest), found[digest])
        return found

    def _loaded(self) -> LoadedVit:
        options = self._options
        if self._cache is None:
            return load_vit(options)
        return self._cache.networks.get(options, lambda: load_vit(options))

    def _kept(self, key: str, pictures: Iterable[bytes]) -> dict[bytes, Similarity]:
        if self._cache is None:
            return {}
        looked_up = ((digest, self._cache.find((key, digest))) for digest in pictures)
        return {digest: kept for digest, kept in looked_up if kept is not None}

    def _looked_at(self, vit: LoadedVit, batch: list[Squashed]) -> dict[bytes, Similarity]:
        self.forwards += len(batch)
        pixels = np.stack([one.pixels for one in batch])
        made = self_similarities(vit, self._options.layer, pixels)
        return {one.digest: similarity for one, similarity in zip(batch, made, strict=True)}
