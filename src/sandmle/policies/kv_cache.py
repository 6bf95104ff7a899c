"""A cache of keys and values with room to grow: a new token is written into place, earlier ones are not copied."""

from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer
from typing_extensions import override

_ROOM = 256


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer, ``[n_rows, n_heads, n_tokens, head_dim]``: views into larger tensors."""

    keys: Any
    values: Any
    _buffers: tuple[Any, Any] | None = None

    @override
    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Adds the keys and values of new tokens and returns all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        done = self.get_seq_length()
        whole = done + key_states.shape[-2]
        if self._buffers is None or whole > self._buffers[0].shape[-2]:
            keys, values = (_with_room(each, whole + _ROOM) for each in (key_states, value_states))
            if done:
                keys[:, :, :done], values[:, :, :done] = self.keys, self.values
            self._buffers = (keys, values)
        keys, values = self._buffers
        keys[:, :, done:whole], values[:, :, done:whole] = key_states, value_states
        self.keys, self.values = keys[:, :, :whole], values[:, :, :whole]
        return self.keys, self.values

    @override
    def batch_select_indices(self, indices: Any) -> None:
        """Keeps these rows, in this order."""
        super().batch_select_indices(indices)
        self._buffers = None


def growing_cache(config: Any) -> Any:
    """Returns an empty cache for a model; layers other than plain attention (sliding windows) stay what they are."""
    cache = DynamicCache(config=config)
    cache.layers = [GrowingLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def _with_room(like: Any, n_tokens: int) -> Any:
    return torch.empty(*like.shape[:-2], n_tokens, like.shape[-1], dtype=like.dtype, device=like.device)
