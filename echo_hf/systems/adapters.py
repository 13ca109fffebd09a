"""The adapters that echo-hf brings; importing this file registers them, and loads no model."""
