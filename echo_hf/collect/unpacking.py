"""Take a body in piece by piece, unpack it within a limit, and stop early at what is no picture."""

from __future__ import annotations

import zlib

from echo_hf.open_picture import BadPictureError
from echo_hf.picture_kinds import FIRST_BYTES, format_of, kind_of_other
from echo_hf.reasons import BadPicture

PLAIN = frozenset({"", "identity"})
ZLIB = frozenset({"gzip", "x-gzip", "deflate"})
EITHER_ZLIB_OR_GZIP = 47


class Body:
    """The body of a response, as far as it has come.

    Args:
        encoding: The value of its Content-Encoding; null when it has none.
        most_bytes: Most bytes, as they come and unpacked.

    Raises:
        BadPictureError: The encoding is not one that is unpacked here.
    """

    def __init__(self, encoding: str | None, most_bytes: int) -> None:
        name = (encoding or "").strip().lower()
        if name not in PLAIN | ZLIB:
            raise BadPictureError(BadPicture.DAMAGED, f"packed as {name[:40]!r}, which was refused")
        self._unpacker = zlib.decompressobj(EITHER_ZLIB_OR_GZIP) if name in ZLIB else None
        self._most = most_bytes
        self._came = 0
        self._data = bytearray()
        self._known = False

    def add(self, piece: bytes) -> None:
        """Takes the next piece in.

        Args:
            piece: Bytes as they came.

        Raises:
            BadPictureError: There are more than allowed, they cannot be unpacked, or they begin
                as no picture does.
        """
        self._came += len(piece)
        self._data += self._unpacked(piece)
        if max(self._came, len(self._data)) > self._most:
            raise BadPictureError(BadPicture.TOO_MANY_BYTES, f"expected at most {self._most} bytes")
        if len(self._data) >= FIRST_BYTES and not self._known:
            self._check_kind()

    def whole(self) -> bytes:
        """All of it.

        Returns:
            The bytes of a picture, of which only the beginning is known to be right.

        Raises:
            BadPictureError: It begins as no picture does, or the packed data has no end.
        """
        if self._unpacker and not self._unpacker.eof:
            raise BadPictureError(BadPicture.TRUNCATED, f"{self._came} packed bytes without end")
        self._check_kind()
        return bytes(self._data)

    def _unpacked(self, piece: bytes) -> bytes:
        if self._unpacker is None:
            return piece
        try:
            # One more than allowed is enough to know, whatever would follow.
            return self._unpacker.decompress(piece, self._most + 1 - len(self._data))
        except zlib.error as error:
            raise BadPictureError(BadPicture.DAMAGED, f"cannot be unpacked: {error}") from error

    def _check_kind(self) -> None:
        first = bytes(self._data[:FIRST_BYTES])
        if format_of(first) is None:
            raise BadPictureError(kind_of_other(first), f"it begins with {first[:16]!r}")
        self._known = True
