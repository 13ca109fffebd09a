"""Stands for a module of BAGEL: what the tokenizer is given, and images in RGB."""


def add_special_tokens(tokenizer):
    return tokenizer, {"eos_token_id": 1}, 0


def pil_img2rgb(image):
    return image.convert("RGB")
