"""The mean colour histogram of each system's outputs, and their mean colour (figure B.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echo_hf.metrics.color_histograms import CHANNELS, LEVELS, Floats, Integers


@dataclass(frozen=True)
class MeanColours:
    """The mean of some pictures' histograms.

    Attributes:
        pictures: How many they are.
        shares: Array [channel, level], each channel adding up to 1.
    """

    pictures: int
    shares: Floats

    @property
    def mean(self) -> tuple[float, float, float]:
        """The mean red, green and blue, in levels from 0 to 255."""
        red, green, blue = self.shares @ np.arange(LEVELS)
        return float(red), float(green), float(blue)

    @property
    def hexadecimal(self) -> str:
        """The mean colour as a page names it."""
        return "#" + "".join(f"{round(level):02x}" for level in self.mean)


class ColourSum:
    """Histograms of pictures that come one by one; each picture counts once, whatever its size.

    Example:
        >>> from PIL import Image
        >>> from echo_hf.metrics.color_histograms import histograms
        >>> found = ColourSum()
        >>> found.add(histograms(Image.new("RGB", (1, 1), (255, 0, 10))))
        >>> found.add(histograms(Image.new("RGB", (8, 8), (0, 0, 30))))
        >>> found.mean().mean, found.mean().hexadecimal
        ((127.5, 0.0, 20.0), '#800014')
    """

    def __init__(self) -> None:
        self._sum: Floats = np.zeros((CHANNELS, LEVELS))
        self._pictures = 0

    def add(self, counts: Integers) -> None:
        """Adds a picture.

        Args:
            counts: Array [channel, level] of its pixels.
        """
        self._sum += counts / counts.sum(axis=-1, keepdims=True)
        self._pictures += 1

    def mean(self) -> MeanColours:
        """The mean of all that were added; of none, zeros."""
        return MeanColours(self._pictures, self._sum / max(self._pictures, 1))
