"""The adapters that echo-hf brings; importing this file registers them, and loads no model."""

import echo_hf.systems.anole
import echo_hf.systems.diffusers  # noqa: F401 - importing them registers them
