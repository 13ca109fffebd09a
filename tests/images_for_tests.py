"""Images and color profiles made by hand, for tests that must know every number in them."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Numbers = NDArray[np.float64]

# The specifications give the primaries as x and y, and white as D65; profiles want them at D50.
PRIMARIES = {
    "srgb": ((0.64, 0.33), (0.30, 0.60), (0.15, 0.06)),
    "adobe": ((0.64, 0.33), (0.21, 0.71), (0.15, 0.06)),
    "p3": ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060)),
}
D65 = (0.3127, 0.3290)
D50 = np.array([0.9642, 1.0, 0.8249])
BRADFORD = np.array(
    [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]]
)


def encoded(image: Image.Image, name: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, name, **options)
    return file.getvalue()


def noise(size: tuple[int, int]) -> Image.Image:
    levels = np.random.default_rng(0).integers(60, 200, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(levels)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png(size: tuple[int, int], depth: int, color_type: int, rows: bytes, *more: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", *size, depth, color_type, 0, 0, 0)
    chunks = [
        png_chunk(b"IHDR", header),
        *more,
        png_chunk(b"IDAT", zlib.compress(rows)),
        png_chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def xyz_matrix(space: str) -> Numbers:
    """Linear RGB to XYZ at D50, from the primaries of the space."""
    columns = np.array([_xyz(*point) for point in PRIMARIES[space]]).T
    white = _xyz(*D65)
    matrix = columns * np.linalg.solve(columns, white)
    cones = BRADFORD @ D50 / (BRADFORD @ white)
    return np.linalg.inv(BRADFORD) @ np.diag(cones) @ BRADFORD @ matrix


def srgb_encoded(linear: Numbers) -> NDArray[np.uint8]:
    """Linear light in sRGB's primaries to levels, by the formula of IEC 61966-2-1."""
    light = linear.clip(0, 1)
    levels = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return (levels * 255).round().astype(np.uint8)


def in_srgb(levels: NDArray[np.uint8], space: str, gamma: float) -> NDArray[np.uint8]:
    xyz = (levels / 255.0) ** gamma @ xyz_matrix(space).T
    return srgb_encoded(xyz @ np.linalg.inv(xyz_matrix("srgb")).T)


def lab_in_srgb(lab: Numbers) -> NDArray[np.uint8]:
    """What a color of CIELAB at D50 is in sRGB."""
    y = (lab[..., 0] + 16) / 116
    ratios = np.stack([y + lab[..., 1] / 500, y, y - lab[..., 2] / 200], -1)
    cubed = np.where(ratios > 6 / 29, ratios**3, 3 * (6 / 29) ** 2 * (ratios - 4 / 29))
    return srgb_encoded((cubed * D50) @ np.linalg.inv(xyz_matrix("srgb")).T)


def rgb_profile(space: str, gamma: float | None, off: float = 0.0) -> bytes:
    """An ICC profile of three primaries and one gamma."""
    matrix, curve = xyz_matrix(space), _srgb_curve() if gamma is None else _curve(gamma)
    matrix[0, :2] += off, -off
    tags = {f"{name}XYZ".encode(): _xyz_tag(matrix[:, at]) for at, name in enumerate("rgb")}
    curves = {f"{name}TRC".encode(): curve for name in "rgb"}
    return _profile(b"mntr", b"RGB ", b"XYZ ", {**tags, **curves})


def grey_profile(gamma: float) -> bytes:
    return _profile(b"mntr", b"GRAY", b"XYZ ", {b"kTRC": _curve(gamma)})


def ink_profile(corners: NDArray[np.uint8]) -> bytes:
    """An ICC profile of four inks."""
    straight = bytes(range(256))
    identity = struct.pack(">9i", *(65536 * number for number in (1, 0, 0, 0, 1, 0, 0, 0, 1)))
    table = b"mft1" + bytes(4) + bytes([4, 3, 2, 0]) + identity
    return _profile(
        b"prtr",
        b"CMYK",
        b"Lab ",
        {b"A2B0": table + straight * 4 + corners.tobytes() + straight * 3},
    )


def _xyz(x: float, y: float) -> Numbers:
    return np.array([x / y, 1.0, (1 - x - y) / y])


def _fixed(numbers: Numbers) -> bytes:
    return struct.pack(f">{len(numbers)}i", *(round(number * 65536) for number in numbers))


def _xyz_tag(numbers: Numbers) -> bytes:
    return b"XYZ " + bytes(4) + _fixed(numbers)


def _curve(gamma: float) -> bytes:
    return b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256)) + bytes(2)


def _srgb_curve() -> bytes:
    level = np.linspace(0, 1, 1024)
    light = np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)
    steps = (light * 65535).round().astype(int)
    return b"curv" + bytes(4) + struct.pack(">I1024H", 1024, *steps)


def _profile(kind: bytes, colors: bytes, connection: bytes, tags: dict[bytes, bytes]) -> bytes:
    every = {b"wtpt": _xyz_tag(D50), **tags}
    at = 128 + 4 + 12 * len(every)
    table, body = struct.pack(">I", len(every)), b""
    for name, data in every.items():
        table += name + struct.pack(">II", at + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    header = struct.pack(
        ">I4sI4s4s4s", at + len(body), bytes(4), 0x02400000, kind, colors, connection
    )
    header += bytes(12) + b"acsp" + bytes(28) + _fixed(D50)
    return header.ljust(128, b"\x00") + table + body
