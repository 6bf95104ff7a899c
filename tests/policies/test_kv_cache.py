"""The growing cache holds what the plain one holds."""

import torch
from transformers import DynamicCache

from sandmle.policies.kv_cache import GrowingLayer, growing_cache
from tests.policies.tiny import tiny


def test_it_holds_what_the_plain_cache_holds_also_when_rows_end() -> None:
    config = tiny()[0].config
    plain, growing = DynamicCache(config=config), growing_cache(config)
    generator = torch.Generator().manual_seed(0)
    rows = 4
    for step, n_tokens in enumerate([7, 1, 1, 300, *[1] * 600]):
        if step in (2, 100):
            kept = torch.tensor([0, 2, 3][: rows - 1])
            rows -= 1
            plain.batch_select_indices(kept)
            growing.batch_select_indices(kept)
        for layer in range(config.num_hidden_layers):
            states = [torch.randn(rows, 2, n_tokens, 8, generator=generator) for _ in range(2)]
            expected, found = plain.update(*states, layer), growing.update(*states, layer)
            assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
        assert plain.get_seq_length() == growing.get_seq_length()


def test_earlier_tokens_are_not_copied_at_each_step() -> None:
    layer = GrowingLayer()
    one = torch.zeros(1, 1, 1, 4)
    places = {layer.update(one, one)[0].data_ptr() for _ in range(200)}
    assert len(places) == 1


def test_layers_of_another_kind_stay() -> None:
    config = tiny()[0].config
    assert {type(layer) for layer in growing_cache(config).layers} == {GrowingLayer}
    changed = type(config)(**{**config.to_dict(), "layer_types": ["full_attention", "sliding_attention"]})
    changed.sliding_window = 16
    kinds = [type(layer) for layer in growing_cache(changed).layers]
    assert kinds[0] is GrowingLayer
    assert kinds[1] is not GrowingLayer
