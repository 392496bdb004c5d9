"""The encoder for search: `Transformer.encode` with joined projections."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.decoding import weights
from heedful.decoding.projection_kernels import MakeProjection, Precision, activated, projections
from heedful.decoding.weights import Norm
from heedful.model.attention import attention
from heedful.model.layers import EncoderLayer
from heedful.model.transformer import Memory, Transformer, padding_mask


class SearchEncoder:
    """A copy of a model's encoder for search.

    It does not follow later changes of the model's weights.
    """

    def __init__(self, model: Transformer, precision: Precision = "fp32") -> None:
        # The encoder runs once per sentence: 8-bit weights would cost exactness and save little.
        make, self.dtype = projections("fp32" if precision == "int8" else precision, model.embedding.weight_VD.dtype)
        self.embedding = model.embedding
        self.layers = [_Layer(layer, make, self.dtype) for layer in model.encoder]

    def encode(self, source_BS: Tensor) -> Memory:
        """Return the encoder's output for padded sources."""
        mask_B11S = padding_mask(source_BS)
        embedded_BSD: Tensor = self.embedding(source_BS, "source")
        B, S, D = embedded_BSD.shape
        x_RD = embedded_BSD.to(self.dtype).view(B * S, D)
        for layer in self.layers:
            x_RD = layer(x_RD, B, mask_B11S)
        return Memory(x_RD.view(B, S, D), mask_B11S)


class _Layer:
    """One `EncoderLayer`. Rows are B sentences × S positions."""

    def __init__(self, layer: EncoderLayer, make: MakeProjection, dtype: torch.dtype) -> None:
        own, feed_forward = layer.self_attention, layer.feed_forward
        self._h = own.h
        self._widths = [own.query.out_features, own.key.out_features, own.value.out_features]
        self._query_key_value = make(*weights.joined(*map(weights.linear, (own.query, own.key, own.value))))
        self._output = make(*weights.linear(own.output))
        self._after_self_attention = Norm.of(layer.after_self_attention, dtype)
        self._inner = make(*weights.linear(feed_forward.inner))
        self._activation = feed_forward.activation
        self._outer = make(*weights.linear(feed_forward.outer))
        self._after_feed_forward = Norm.of(layer.after_feed_forward, dtype)

    def __call__(self, x_RD: Tensor, sentences: int, mask_B11S: Tensor | None) -> Tensor:
        projected = self._query_key_value(x_RD).view(sentences, len(x_RD) // sentences, -1)
        q_BHSK, k_BHSK, v_BHSK = (
            x.view(*x.shape[:2], self._h, -1).transpose(1, 2) for x in torch.split(projected, self._widths, dim=2)
        )
        heads_BHSK = attention(q_BHSK, k_BHSK, v_BHSK, mask_B11S)
        attended_RD = self._output(heads_BHSK.transpose(1, 2).reshape(len(x_RD), -1))
        x_RD = self._after_self_attention.add(x_RD, attended_RD)
        return self._after_feed_forward.add(x_RD, self._outer(activated(self._inner, x_RD, self._activation)))
