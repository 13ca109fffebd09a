"""Systems behind Google's Gemini API."""

from echo_hf.systems.google_images.system import GoogleImages

__all__ = ["GoogleImages"]
