"""Models of ``transformers`` in this process: batched sampling that returns the ids and their log-probabilities.

A loop of our own instead of ``model.generate``: it draws each reply from a generator of its own, so that a reply does
not depend on its neighbours, keeps one log-probability a token instead of all logits, reads a prompt that several
requests share only once, and drops rows that have ended from the batch.
"""

import random
from collections.abc import Sequence
from typing import Any

import torch

from sandmle.policies.batching import BatchedPolicy
from sandmle.policies.kv_cache import growing_cache
from sandmle.policies.options import PolicyOptions
from sandmle.policies.renderers import ChatRenderer
from sandmle.policies.tokens import TokenReply, TokenRequest


class HFGenerator:
    """A causal language model of ``transformers``, on the device that it lies on."""

    def __init__(self, model: Any, stop_ids: Sequence[int], pad_id: int, context: int | None = None) -> None:
        """Takes a model; it may go on being trained between two calls.

        Args:
            model: A causal language model.
            stop_ids: Ids that end a reply.
            pad_id: Any id; padding is masked.
            context: Most ids of prompt and reply; None for what the model was made for.
        """
        self.model = model
        self.context = int(context or model.config.max_position_embeddings)
        self._stop_ids = frozenset(stop_ids)
        self._pad_id = pad_id

    def generate(self, requests: Sequence[TokenRequest]) -> list[TokenReply]:
        """Returns one reply a request, in order."""
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad():
                return self._generate(list(requests))
        finally:
            self.model.train(was_training)

    def close(self) -> None:
        """Does nothing: the model belongs to whoever gave it."""

    def _generate(self, requests: list[TokenRequest]) -> list[TokenReply]:
        device = next(self.model.parameters()).device
        rows = [_Row(request, self._stop_ids) for request in requests]
        live = rows
        logits, mask, cache = self._read(requests, device)
        while True:
            ids = _draw(logits, live)
            keep = [at for at, row in enumerate(live) if not row.is_done]
            if not keep:
                return [row.reply() for row in rows]
            if len(keep) < len(live):
                live = [live[at] for at in keep]
                index = torch.tensor(keep, device=device)
                ids, mask = ids[index], mask[index]
                cache.batch_select_indices(index)
            mask = torch.cat([mask, mask.new_ones(len(live), 1)], dim=1)
            output = self.model(
                input_ids=ids[:, None],
                attention_mask=mask,
                position_ids=mask.sum(1, keepdim=True) - 1,
                cache=cache,
                use_cache=True,
            )
            logits, cache = output.logits[:, -1].float(), output.cache

    def _read(self, requests: list[TokenRequest], device: Any) -> tuple[Any, Any, Any]:
        """Reads the prompts; returns next-token logits, mask and cache of one row a request."""
        unique = list(dict.fromkeys(request.prompt_ids for request in requests))
        width = max(len(ids) for ids in unique)
        padded = torch.tensor([[self._pad_id] * (width - len(ids)) + list(ids) for ids in unique], device=device)
        mask = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in unique], device=device)
        output = self.model(
            input_ids=padded,
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            cache=growing_cache(self.model.config),
            use_cache=True,
            logits_to_keep=1,
        )
        logits, cache = output.logits[:, -1].float(), output.cache
        if len(unique) < len(requests):
            place = {ids: at for at, ids in enumerate(unique)}
            index = torch.tensor([place[request.prompt_ids] for request in requests], device=device)
            logits, mask = logits[index], mask[index]
            cache.batch_select_indices(index)
        return logits, mask, cache


class _Row:
    """One reply in the making, with random numbers of its own."""

    def __init__(self, request: TokenRequest, stop_ids: frozenset[int]) -> None:
        self.request = request
        self._stop_ids = stop_ids
        self._rng = random.Random(request.rng_seed)
        self._ids: list[int] = []
        self._logprobs: list[float] = []

    @property
    def is_done(self) -> bool:
        return self._ended or len(self._ids) >= self.request.max_tokens

    @property
    def _ended(self) -> bool:
        return bool(self._ids) and self._ids[-1] in self._stop_ids

    def uniform(self) -> float:
        """Returns the next random number, above 0 and at most 1."""
        return 1.0 - self._rng.random()

    def add(self, token_id: int, logprob: float) -> None:
        self._ids.append(token_id)
        self._logprobs.append(logprob)

    def reply(self) -> TokenReply:
        return TokenReply(tuple(self._ids), tuple(self._logprobs), self._ended)


def _draw(logits: Any, rows: Sequence[_Row]) -> Any:  # [n_rows, vocab] -> [n_rows]
    """Draws the next id of every row by its own random number, adds it to the row, and returns the ids."""
    column = logits.new_tensor([[row.request.temperature] for row in rows])
    logprobs = torch.log_softmax(logits / torch.where(column > 0, column, 1.0), dim=-1)
    if any(row.request.top_p < 1 for row in rows):
        logprobs = _nucleus(logprobs, logits.new_tensor([[row.request.top_p] for row in rows]))
    # The first id at which the summed probability reaches the row's number; double, for long vocabularies.
    reached = logprobs.double().exp().cumsum(-1)
    goal = reached.new_tensor([[row.uniform()] for row in rows]) * reached[:, -1:]
    drawn = torch.searchsorted(reached, goal).clamp(max=logits.shape[1] - 1)
    ids = torch.where(column > 0, drawn, logprobs.argmax(-1, keepdim=True))
    chosen = logprobs.gather(1, ids)
    for row, token_id, logprob in zip(rows, ids[:, 0].tolist(), chosen[:, 0].tolist(), strict=True):
        row.add(token_id, logprob)
    return ids[:, 0]


def _nucleus(logprobs: Any, top_p: Any) -> Any:
    """Returns log-probabilities of the likeliest ids that together reach ``top_p``; -inf elsewhere."""
    ordered, order = logprobs.sort(dim=-1, descending=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    outside = torch.zeros_like(before, dtype=torch.bool).scatter(1, order, before >= top_p)
    return torch.log_softmax(logprobs.masked_fill(outside, float("-inf")), dim=-1)


def stop_ids_of(model: Any, tokenizer: Any, renderer: ChatRenderer) -> list[int]:
    """Returns the ids that end a reply: what the template closes it with, and what the model calls its end."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    many = configured if isinstance(configured, list) else [configured]
    return sorted({renderer.end_id, *(each for each in (*many, tokenizer.eos_token_id) if each is not None)})


def make_policy(model: Any, tokenizer: Any, name: str, **settings: Any) -> BatchedPolicy:
    """Returns a policy over a model in hand.

    Args:
        model: A causal language model of ``transformers``.
        tokenizer: Its tokenizer, with a chat template.
        name: The policy, for the record.
        **settings: ``template_options``, ``context``, and those of :class:`BatchedPolicy`.

    Raises:
        ConfigError: The chat template cannot be used.
    """
    renderer = ChatRenderer(tokenizer, name, settings.pop("template_options", None))
    pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else renderer.end_id
    generator = HFGenerator(model, stop_ids_of(model, tokenizer, renderer), pad_id, settings.pop("context", None))
    return BatchedPolicy(name, renderer, generator, **settings)


def open_hf(argument: str, options: PolicyOptions) -> BatchedPolicy:
    """Opens ``hf:FOLDER``: a model in a folder, as ``save_pretrained`` writes it, or a name that is in the local cache.

    Raises:
        ConfigError: There is no such model, or its chat template cannot be used.
    """
    from sandmle.policies.loading import load_model

    del options
    model, tokenizer = load_model(argument)
    return make_policy(model, tokenizer, f"hf:{argument}")
