"""A small Qwen3 with a tokenizer of its own, made on the spot: for CI, and to be taught from scratch.

Nothing is downloaded. The tokenizer is trained on given texts. With ``lines``, lines that recur in the texts of several
tasks are one token each, so that transcripts full of recurring code become short; names of columns, numbers and all
else are cut into the same pieces wherever they stand, so that a model can learn to copy them.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from sandmle.training.recipe import TinyConfig

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_PIECES = r"[A-Za-z]+(?:_[A-Za-z0-9]+)+| ?\p{L}+|\p{N}{1,3}|\n+| {2,}| ?[^\p{L}\p{N}\s]+|\s"
"""A name with underscores, a word, up to three digits, blanks, marks: no piece of the alphabet spans two of these."""
_INITIAL_SPREAD = 0.08
"""Standard deviation of the first weights; from the usual 0.02, for wide models, a narrow one learns slowly."""
_FEWEST_TASKS, _MOST_LINES, _SHORTEST_LINE = 3, 8192, 4

Text = tuple[str, str]
"""What names the task that a text is of, and the text."""


def make_tokenizer(texts: Iterable[Text], config: TinyConfig) -> Any:
    """Returns a byte-level BPE tokenizer with a ChatML template, trained on texts."""
    texts = list(texts)
    lines = _recurring_lines(texts) if config.lines else []
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not config.lines)
    pieces = pre_tokenizers.Split(Regex(_PIECES), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pieces, byte_level]) if config.lines else byte_level
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    known = frozenset(lines)
    rest = ("".join(line for line in text.splitlines(keepends=True) if line not in known) for _, text in texts)
    tokenizer.train_from_iterator(rest, trainer)
    tokenizer.add_tokens([AddedToken(line, normalized=False, special=False) for line in lines])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=_CHATML
    )


def _recurring_lines(texts: Iterable[Text]) -> list[str]:
    """Returns the lines that several tasks share, the commonest first."""
    by_task: dict[str, set[str]] = {}
    for task, text in texts:
        lines = (line for line in text.splitlines(keepends=True) if line.endswith("\n"))
        by_task.setdefault(task, set()).update(line for line in lines if len(line.strip()) >= _SHORTEST_LINE)
    counts = Counter(line for lines in by_task.values() for line in lines)
    ordered = sorted(counts, key=lambda line: (-counts[line], line))
    return [line for line in ordered if counts[line] >= _FEWEST_TASKS][:_MOST_LINES]


def make_tiny(texts: Iterable[Text], config: TinyConfig | None = None, *, rng_seed: int = 0) -> tuple[Any, Any]:
    """Returns a randomly initialised model and its tokenizer; the same for the same texts and configuration.

    Args:
        texts: What the tokenizer is trained on, by task.
        config: Sizes.
        rng_seed: Seeds the weights.
    """
    config = config or TinyConfig()
    tokenizer = make_tokenizer(texts, config)
    shape = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden,
        intermediate_size=3 * config.hidden,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        head_dim=config.hidden // config.heads,
        max_position_embeddings=config.context,
        initializer_range=_INITIAL_SPREAD,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng_seed)
        model = Qwen3ForCausalLM(shape)
    return model.eval(), tokenizer
