"""The adapters that echo-hf brings; importing this file registers them, and loads no model."""

import echo_hf.systems.anole
import echo_hf.systems.command
import echo_hf.systems.diffusers
import echo_hf.systems.files
import echo_hf.systems.google_images
import echo_hf.systems.openai_images
import echo_hf.systems.rewrite  # noqa: F401 - importing them registers them
