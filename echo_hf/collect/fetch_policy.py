"""What may be fetched from addresses in posts, how fast, and for how long."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network

from pydantic import BaseModel, ConfigDict, Field

from echo_hf.pictures import MOST_BYTES, MOST_PIXELS


class FetchPolicy(BaseModel):
    """Limits of fetching; immutable, and closed to keys it does not know.

    Attributes:
        most_bytes: Largest picture, before and after any compression in transit.
        most_pixels: Width times height of the largest picture.
        connect_timeout_s: For looking a name up and connecting.
        read_timeout_s: Longest silence of a server.
        total_timeout_s: For one attempt with all its redirects, however steadily bytes drip.
        max_attempts: How often a picture is asked for in a run, while it may still go better.
        backoff_s: Longest wait before the second attempt; it doubles with each.
        longest_wait_s: Longest wait that a server may ask for; beyond, its pictures are left for
            another run.
        max_redirects: Redirects of one address.
        concurrency: Pictures under way at once; each may be in memory.
        per_host: Of these, at one host.
        ports: Ports that are connected to.
        allow_addresses: Networks that are connected to though they are not public.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    most_bytes: int = Field(MOST_BYTES, gt=0, le=MOST_BYTES)
    most_pixels: int = Field(MOST_PIXELS, gt=0, le=MOST_PIXELS)
    connect_timeout_s: float = Field(10.0, gt=0)
    read_timeout_s: float = Field(20.0, gt=0)
    total_timeout_s: float = Field(120.0, gt=0)
    max_attempts: int = Field(3, ge=1, le=10)
    backoff_s: float = Field(1.0, ge=0)
    longest_wait_s: float = Field(60.0, ge=0)
    max_redirects: int = Field(5, ge=0, le=20)
    concurrency: int = Field(8, ge=1, le=64)
    per_host: int = Field(4, ge=1, le=64)
    ports: frozenset[int] = frozenset({80, 443})
    allow_addresses: tuple[IPv4Network | IPv6Network, ...] = ()
