"""Two networks of a few nodes that insightface takes for a detector and a recognizer of faces.

A face is a cell of 32 x 32 pixels that is, on average, much redder than it is blue: its score
is the difference in levels, divided by 256. What it looks like are the colors at the centres of
its four quarters. Both can be told from a drawing by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

STRIDES = (8, 16, 32)
CELL = 32
CROP = 112
# Where eyes, nose and mouth belong in an aligned crop, so that the crop is the cell.
LANDMARKS = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655],
     [70.7299, 92.2041]]
) / CROP  # fmt: skip


def write_pack(folder: Path, *, side: int | None = None, length: float = 1.0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_detector(folder / "scrfd_10g_bnkps.onnx", side)
    write_recognizer(folder / "glintr100.onnx", length)
    return folder


def write_detector(path: Path, side: int | None = None) -> None:
    from onnx.helper import make_node as node

    constants = {
        "red_less_blue": np.array([0.5, 0, -0.5], np.float32).reshape(1, 3, 1, 1),
        "nothing": np.array(0, np.float32),
        "all": np.array(1, np.float32),
        "column": np.array([-1, 1], np.int64),
        "first": np.array([[1, 0]], np.float32),
        "box": np.array([[0, 0, 1, 1]], np.float32),
        "points": LANDMARKS.reshape(1, 10).astype(np.float32),
    }
    nodes = [node("Conv", ["input", "red_less_blue"], ["redness"])]
    for stride in STRIDES:
        shape = {"kernel_shape": [stride, stride], "strides": [stride, stride]}
        nodes += [
            node("AveragePool", ["redness"], [f"mean{stride}"], **shape),
            node("Mul", [f"mean{stride}", "all" if stride == CELL else "nothing"], [f"m{stride}"]),
            node("Reshape", [f"m{stride}", "column"], [f"cell{stride}"]),
            node("MatMul", [f"cell{stride}", "first"], [f"pair{stride}"]),
            node("Reshape", [f"pair{stride}", "column"], [f"score{stride}"]),
            node("Mul", [f"score{stride}", "nothing"], [f"zero{stride}"]),
            node("Add", [f"zero{stride}", "box"], [f"box{stride}"]),
            node("Add", [f"zero{stride}", "points"], [f"points{stride}"]),
        ]
    kinds = (("score", 1), ("box", 4), ("points", 10))
    made = [(f"{kind}{stride}", ["n", wide]) for kind, wide in kinds for stride in STRIDES]
    _write(path, nodes, ("input", [1, 3, side or "height", side or "width"]), made, constants)


def write_recognizer(path: Path, length: float = 1.0) -> None:
    from onnx import helper

    constants = {
        "from": np.array([28, 28], np.int64),
        "to": np.array([CROP, CROP], np.int64),
        "axes": np.array([2, 3], np.int64),
        "step": np.array([56, 56], np.int64),
        "length": np.array(length, np.float32),
    }
    nodes = [
        helper.make_node("Slice", ["face", "from", "to", "axes", "step"], ["centres"]),
        helper.make_node("Flatten", ["centres"], ["flat"]),
        helper.make_node("Mul", ["flat", "length"], ["embedding"]),
    ]
    _write(path, nodes, ("face", ["n", 3, CROP, CROP]), [("embedding", ["n", 12])], constants)


def _write(
    path: Path,
    nodes: list[Any],
    given: tuple[str, list[Any]],
    made: list[tuple[str, list[Any]]],
    constants: dict[str, Any],
) -> None:
    from onnx import TensorProto, checker, helper, numpy_helper, save

    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info(given[0], TensorProto.FLOAT, given[1])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in made],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    checker.check_model(model)
    save(model, path)


SIDE = 128
CELL = 32
GREY = Image.new("RGB", (SIDE, SIDE), (90, 90, 90))
Color = tuple[int, int, int]


def drawn(cells: Mapping[tuple[int, int], Sequence[Color]]) -> Image.Image:
    levels = np.array(GREY)
    levels[-1, -1] = 120
    half = CELL // 2
    for (row, column), quarters in cells.items():
        for number, color in enumerate(quarters):
            top, left = CELL * row + half * (number // 2), CELL * column + half * (number % 2)
            levels[top : top + half, left : left + half] = color
    return Image.fromarray(levels)


def embedding(quarters: Sequence[Color]) -> NDArray[np.float64]:
    return (np.array(quarters, np.float64).T.reshape(-1) - 127.5) / 127.5


def cosine(one: Sequence[Color], other: Sequence[Color]) -> float:
    first, second = embedding(one), embedding(other)
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))
