"""Systems behind a server that draws pictures as OpenAI's does."""

from echo_hf.systems.openai_images.system import OpenAIImages

__all__ = ["OpenAIImages"]
