"""Prompts for SmolLM2-135M-Instruct in its chat format, of given lengths, and its tokenizer."""
import os
import random

from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
SHIPS = ("Hazel", "Petrel", "Marigold", "Juniper", "Kestrel", "Lantern", "Saffron", "Winter Rose")
PORTS = ("Amber Bay", "Port Linden", "Greystone", "Old Harbour", "Millport", "Sandwick", "Thorn Island")
CARGO = ("salted fish", "wool", "oak timber", "lamp oil", "barley", "roof slate", "copper", "apples")
WEATHER = ("The wind was fair.", "Fog held her back for an hour.", "It rained until noon.",
           "The sea was calm.", "Ice lay along the coast.", "The pilot was late.")


def tokenizer(path):
    """What the file's vocabulary and its pre-tokeniser's name, smollm, mean."""
    fields = GGUFReader(path).fields

    def field(name):
        return fields[f"tokenizer.ggml.{name}"].contents()

    assert field("model") == "gpt2" and field("pre") == "smollm"
    tokens, types = field("tokens"), field("token_type")
    merges = [tuple(merge.split(" ")) for merge in field("merges")]
    out = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, merges))
    out.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    out.decoder = decoders.ByteLevel()
    out.add_special_tokens([AddedToken(token, normalized=False, special=True)
                            for token, kind in zip(tokens, types) if kind == 3])
    assert out.get_vocab_size() == len(tokens)
    return out


def chat(question):
    return (f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n"
            "<|im_start|>assistant\n")


def licence():
    with open(os.path.join(ROOT, "LICENSE"), encoding="utf-8") as file:
        return " ".join(file.read().split())


def harbour_log(seed, days):
    rng = random.Random(seed)
    lines = []
    for day in range(1, days + 1):
        origin, goal = rng.sample(PORTS, 2)
        lines.append(f"Day {day}: the {rng.choice(SHIPS)} left {origin} for {goal} with "
                     f"{rng.randint(20, 400)} barrels of {rng.choice(CARGO)}. {rng.choice(WEATHER)}")
    return "\n".join(lines)


def cut_to(encode, make, text, num_tokens):
    """make(the longest beginning of `text`) that has exactly `num_tokens` tokens."""
    low, high = 0, len(text)
    while low < high:  # the length grows with the cut but for a token or two at the cut
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(encode(make(text[:middle]))) <= num_tokens else (
            low, middle - 1)
    for end in range(min(low + 20, len(text)), 0, -1):
        prompt = make(text[:end])
        if len(encode(prompt)) == num_tokens:
            return prompt
    raise AssertionError(f"no cut gives {num_tokens} tokens")


def prompt(name, encode):
    if name == "short":
        return chat("Explain step by step how a loaf of bread is baked, from flour to oven.")
    if name == "2k":
        return cut_to(encode, lambda text: chat(
            f"{text}\n\nSummarise the licence above in a few sentences."), licence(), 2000)
    return cut_to(encode, lambda text: chat(
        f"This is a harbour's log.\n\n{text}\n\nTell the story of the first three days of this log."),
        harbour_log(1, 500), 8000)
