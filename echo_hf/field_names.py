"""How our columns answer to the names in the paper's table D.1 and in the official dataset.

Each value is a path into one of our tables: `table.column`, with a dot for a field of a struct or
of a list's items. `keyword` is one word in the paper and a list here, because two searches may
find the same post.
"""

from __future__ import annotations

from collections.abc import Mapping

PAPER_RETRIEVED: Mapping[str, str] = {
    "text": "posts.text",
    "timestamp": "posts.timestamp",
    "replies_above": "threads.posts.parent",
    "keyword": "posts.keywords",
    "url": "posts.url",
    "author": "posts.author",
    "image_urls": "posts.pictures",
    "replies_below": "threads.posts.parent",
    "engagement": "posts.engagement",
}

PAPER_PROCESSED: Mapping[str, str] = {
    "id": "samples.id",
    "post_id": "samples.post_id",
    "prompt": "samples.prompt",
    "prompt_modified": "samples.prompt_modified",
    "quality": "samples.quality",
    "community_feedback": "samples.community_feedback",
    "input_images": "samples.input_images",
    "output_images": "samples.output_images",
    "is_screenshot": "samples.is_screenshot",
    "input_bboxs": "samples.input_bboxs",
    "output_bboxs": "samples.output_bboxs",
}

OFFICIAL_DATASET: Mapping[str, tuple[str, ...]] = {
    "text_to_image": (
        "id",
        "prompt",
        "prompt_modified",
        "prompt_fill_blank",
        "input_images",
        "output_images",
        "community_feedback",
        "has_nsfw",
    ),
    "analysis": ("id", "prompt", "prompt_modified", "quality", "community_feedback"),
    "image_to_image": ("id", "prompt", "input_images", "is_screenshot", "input_bboxs"),
}
