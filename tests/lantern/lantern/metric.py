"""A metric: how bright an output is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from PIL import Image

from echo_hf.metrics import Metric, MetricResult, measure_each


class Light(Metric):
    """The mean brightness of an output, from 0 to 1."""

    name, title = "lantern_light", "Light"
    needs = ("outputs",)
    question = "Light: whether the picture is bright. It fits where the prompt speaks of light."

    def measure(  # type: ignore[override]
        self, outputs: Iterable[Any], *, protocol: Any, options: Any, names: Sequence[str]
    ) -> MetricResult:
        del options, names  # it has no options, and looks at images alone

        def measure_image(image: Image.Image) -> float:
            return float(np.asarray(image.convert("L"), float).mean() / 255)

        return measure_each(self, outputs, measure_image, protocol=protocol)
