"""Pictures as an app's page gets them: under names that tell nothing, in one format, bare.

An encoder's traces, the format and the metadata would tell a keen eye which system made a picture;
so pages get the pixels that judges and metrics see, packed anew.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from PIL import Image

from echo_hf.load_rgb import load_rgb
from echo_hf.pictures import PictureStore

ROUTE = "/picture/"
LONGEST_SIDE = 2048


@dataclass(frozen=True)
class ShownPictures:
    """Some pictures of a run, each under a name that nobody can guess.

    Attributes:
        pictures: Where they lie.
        secret: What the names are made with.
        digests: Those that may be shown, by name; nothing else is served.
    """

    pictures: PictureStore
    secret: bytes = field(repr=False)
    digests: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, pictures: PictureStore, digests: Iterable[str]) -> Self:
        """Names pictures anew: the names are others whenever an app is started.

        Args:
            pictures: Where they lie.
            digests: Those that may be shown.

        Returns:
            What serves them.
        """
        secret = secrets.token_bytes(32)
        return cls(pictures, secret, {_name(secret, digest): digest for digest in digests})

    def address(self, digest: str) -> str:
        """Where a page finds a picture.

        Args:
            digest: Its sha256.

        Returns:
            The path of its address.
        """
        return ROUTE + _name(self.secret, digest)

    def png(self, name: str) -> bytes | None:
        """A picture as a page gets it.

        Args:
            name: The last part of its address.

        Returns:
            A PNG file, at most `LONGEST_SIDE` pixels wide and high; null for an unknown name.

        Raises:
            PictureError: It cannot be shown, or is not there any more.
        """
        digest = self.digests.get(name)
        return None if digest is None else packed(self.pictures.open(digest))


def packed(data: bytes) -> bytes:
    """A picture packed anew, without whatever else its file held.

    Args:
        data: Bytes of an encoded picture.

    Returns:
        A PNG file of the pixels, upright, opaque and in sRGB.

    Raises:
        BadPictureError: It cannot be shown.
    """
    image = load_rgb(data)
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    sink = io.BytesIO()
    image.save(sink, "PNG", compress_level=1)
    return sink.getvalue()


def _name(secret: bytes, digest: str) -> str:
    return hmac.new(secret, digest.encode(), hashlib.sha256).hexdigest()[:32]
