"""The decoder for search: one position at a time, with weights laid out for it.

It computes the formulas of `model/layers.py`, the oracle in the tests. Projections of the same states are one matrix
product, queries are already divided by √d_k, and the precision may be lower.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.decoding import weights
from heedful.decoding.projection_kernels import MakeProjection, Precision, Projection, activated, projections
from heedful.decoding.weights import Norm
from heedful.model.attention import softmax
from heedful.model.layers import DecoderLayer
from heedful.model.transformer import Transformer


class SearchDecoder:
    """A copy of a model's decoder for search.

    It does not follow later changes of the model's weights.
    """

    def __init__(self, model: Transformer, precision: Precision = "fp32") -> None:
        make, self.dtype = projections(precision, model.embedding.weight_VD.dtype)
        self.model = model
        self.layers = [SearchLayer(layer, make, self.dtype) for layer in model.decoder]
        self.logits: Projection = make(*weights.vocabulary_projection(model.embedding))

    def embedded(self, tokens_R: Tensor, position_R: Tensor) -> Tensor:
        """Embed tokens (sections 3.4 and 3.5), each row at its own position."""
        embedding = self.model.embedding
        positions_TD = embedding.positions(int(position_R.max()) + 1)
        x_RD = F.embedding(tokens_R, embedding.weight_VD) * embedding.scale + positions_TD[position_R]
        return x_RD.to(self.dtype)


class SearchLayer:
    """One `DecoderLayer`.

    Rows are B sentences × W hypotheses; keys and values are the two halves of one tensor.
    """

    def __init__(self, layer: DecoderLayer, make: MakeProjection, dtype: torch.dtype) -> None:
        own, cross, feed_forward = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.h = own.h
        self.width = weights.head_width(own)
        self._query_key_value = make(*weights.joined(weights.queries(own), *weights.keys_values(own)))
        self._output = make(*weights.output(own))
        self._after_self_attention = Norm.of(layer.after_self_attention, dtype)
        self._query = make(*weights.queries(cross))
        self._key_value = make(*weights.joined(*weights.keys_values(cross)))
        self._cross_output = make(*weights.output(cross))
        self._after_cross_attention = Norm.of(layer.after_cross_attention, dtype)
        self._inner = make(*weights.linear(feed_forward.inner))
        self._activation = feed_forward.activation
        self._outer = make(*weights.linear(feed_forward.outer))
        self._after_feed_forward = Norm.of(layer.after_feed_forward, dtype)

    def memory(self, states_BSD: Tensor) -> Tensor:
        """Return keys and values of the encoder's output, 2×B×H×S×K, shared by all hypotheses."""
        B, S, D = states_BSD.shape
        return self._heads(self._key_value(states_BSD.reshape(B * S, D)), B)

    def queries_and_new(self, x_RD: Tensor, sentences: int) -> tuple[Tensor, Tensor]:
        """Project the newest position to queries, B×H×W×K, and keys and values, 2×B×H×W×K."""
        query_key_value = self._heads(self._query_key_value(x_RD), sentences)
        return query_key_value[0], query_key_value[1:]

    def step(
        self,
        x_RD: Tensor,
        query_BHWK: Tensor,
        past: Tensor,
        past_mask_B1WP: Tensor,
        memory: Tensor,
        memory_mask_B11S: Tensor,
    ) -> Tensor:
        """Return the layer's states at the newest position.

        Masks are added to the scores (0 or -∞).
        """
        attended = self._output(attend(query_BHWK, past, past_mask_B1WP))
        x_RD = self._after_self_attention.add(x_RD, attended)
        [query_BHWK] = self._heads(self._query(x_RD), len(query_BHWK))
        attended = self._cross_output(attend(query_BHWK, memory, memory_mask_B11S))
        x_RD = self._after_cross_attention.add(x_RD, attended)
        return self._after_feed_forward.add(x_RD, self._outer(activated(self._inner, x_RD, self._activation)))

    def _heads(self, x: Tensor, sentences: int) -> Tensor:
        """Separate joined projections of B·W rows: their number × B×H×W×K."""
        return x.view(sentences, len(x) // sentences, -1, self.h, self.width).permute(2, 0, 3, 1, 4)


def attend(query_BHWK: Tensor, keys_values: Tensor, mask: Tensor) -> Tensor:
    """Compute Eq. 1 for queries already divided by √d_k; return one row per hypothesis."""
    k_BHPK, v_BHPK = keys_values.unbind()
    scores_BHWP = query_BHWK @ k_BHPK.transpose(-2, -1)
    scores_BHWP += mask
    heads_BHWK = softmax(scores_BHWP) @ v_BHPK
    B, H, W, K = heads_BHWK.shape
    return heads_BHWK.transpose(1, 2).reshape(B * W, H * K)
