"""Stands for a module of BAGEL: what the tokenizer is given, and images in RGB."""


def add_special_tokens(tokenizer):
    """The tokenizer, the numbers of the tokens, and how many are new."""
    return tokenizer, {"eos_token_id": 1}, 0


def pil_img2rgb(image):
    """An image without transparency."""
    return image.convert("RGB")
