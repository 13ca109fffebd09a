"""Images: decode, load, compare colors, store, and tell similar ones."""
