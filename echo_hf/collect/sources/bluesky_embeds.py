"""What a post of Bluesky shows beside its text: pictures, and the post it quotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from echo_hf.collect.fields import Fields
from echo_hf.collect.sources.base import Finding, Picture
from echo_hf.reasons import Notice

# Lists of pictures: of up to four, and of a gallery.
LISTS = ("images", "items")
Json = Mapping[str, Any]


def embeds_of(view: Fields, record: Fields) -> list[Json]:
    """What a post embeds, as the platform shows it, else as the author sent it.

    Args:
        view: The post as the platform shows it.
        record: The post as its author wrote it.

    Returns:
        The embedded things.
    """
    shown = view.object("embed")
    several = view.objects("embeds")
    return [shown] if shown else several or [one for one in [record.object("embed")] if one]


def pictures_of(embeds: Sequence[Json], findings: list[Finding]) -> list[Picture]:
    """The pictures among what a post embeds; pictures of links and of videos are none.

    Args:
        embeds: What the post embeds.
        findings: Takes what was wrong.

    Returns:
        The pictures with their descriptions, in their order.
    """
    pictures = []
    for embed in embeds:
        whole = Fields(embed, findings, "embed.")
        beside = Fields(whole.object("media"), findings, "embed.media.")
        for holder in (whole, beside):
            for one in (image for name in LISTS for image in holder.objects(name)):
                picture = _picture(Fields(one, findings, f"{holder.place}images."))
                pictures += [picture] if picture else []
    return pictures


def quoted_in(embeds: Sequence[Json], findings: list[Finding]) -> list[Json]:
    """The records that a post embeds: posts it quotes, and lists or feeds it shows.

    Args:
        embeds: What the post embeds.
        findings: Takes what was wrong.

    Returns:
        The records.
    """
    found = []
    for embed in embeds:
        record = Fields(embed, findings, "embed.").object("record")
        # Beside pictures it is wrapped once more.
        inner = record.get("record") if "uri" not in record else None
        record = inner if isinstance(inner, dict) else record
        found += [record] if record else []
    return found


def _picture(image: Fields) -> Picture | None:
    if image.record.get("fullsize") is None:
        detail = f"described as {image.text('alt')!r}"
        image.findings.append(Finding(Notice.PICTURE_WITHOUT_ADDRESS, detail[:80]))
        return None
    address = image.link("fullsize")
    return Picture(url=address, alt_text=image.text("alt") or None) if address else None
