"""Any server that speaks OpenAI's chat completions: `vllm serve`, OpenAI, Gemini, OpenRouter."""

from echo_hf.engines.openai.engine import OpenAIEngine

__all__ = ["OpenAIEngine"]
