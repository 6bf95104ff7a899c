"""A small Qwen3 with a tokenizer of its own, made on the spot: for CI, and to be taught from scratch.

Nothing is downloaded. The tokenizer is trained on given texts; ``lines`` lets its tokens span whole lines, so that
transcripts full of recurring lines of code become short.
"""

from collections.abc import Iterable
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from sandmle.training.recipe import TinyConfig

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tokenizer(texts: Iterable[str], config: TinyConfig) -> Any:
    """Returns a byte-level BPE tokenizer with a ChatML template, trained on texts."""
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not config.lines)
    split = pre_tokenizers.Split(Regex(r"\n"), behavior="merged_with_previous")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level]) if config.lines else byte_level
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=_CHATML
    )


def make_tiny(texts: Iterable[str], config: TinyConfig | None = None, *, rng_seed: int = 0) -> tuple[Any, Any]:
    """Returns a randomly initialised model and its tokenizer; the same for the same texts and configuration.

    Args:
        texts: What the tokenizer is trained on.
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
        num_key_value_heads=max(1, config.heads // 2),
        head_dim=config.hidden // config.heads,
        max_position_embeddings=config.context,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng_seed)
        model = Qwen3ForCausalLM(shape)
    return model.eval(), tokenizer
