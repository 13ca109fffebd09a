"""Lets torchvision import beside a torch without CUDA, in every process of `make test-vllm`.

torchvision registers the shapes of its compiled operators while it is imported. Its published
wheels are built for CUDA, so that beside a torch for the processor the compiled part does not
load and the first operator is unknown: the import fails, and with it the processors of Qwen's
vision models, which only need its resizing of tensors. Python imports this file by its name at
start-up wherever its folder is on PYTHONPATH, so the processes vLLM starts have it as well.
"""

import sys
from typing import Any

SHAPES = "torchvision._meta_registrations"
OPERATORS = ("nms", "qnms")
SIGNATURE = "(Tensor boxes, Tensor scores, float threshold) -> Tensor"


class DeclareOperators:
    """Declares torchvision's operators, without an implementation, just before they get shapes.

    Attributes:
        library: The declarations: they end with this object, so it must be kept.
    """

    library: Any = None

    def find_spec(self, name: str, *_: Any) -> None:
        if name == SHAPES and self.library is None:
            import torch

            self.library = torch.library.Library("torchvision", "FRAGMENT")
            for operator in OPERATORS:
                self.library.define(operator + SIGNATURE)


if __name__ == "sitecustomize":  # and not when it is only looked at
    sys.meta_path.insert(0, DeclareOperators())
