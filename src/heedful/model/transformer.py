"""The Transformer (Figure 1): encoder and decoder of N layers, with a shared embedding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.config import PAD, ModelConfig
from heedful.model.embeddings import Embedding
from heedful.model.layers import DecoderLayer, EncoderLayer, FeedForward


class Memory(NamedTuple):
    """The encoder's output and its padding mask (None if nothing is padded)."""

    states_BSD: Tensor
    mask_B11S: Tensor | None


class AttentionWeights(NamedTuple):
    """The weights of every head and layer for the three uses of attention (section 3.2.3)."""

    encoder_NBHSS: Tensor
    decoder_NBHTT: Tensor
    cross_NBHTS: Tensor


class Transformer(nn.Module):
    """The model of section 3.

    Like every torch module it starts in training mode: call `.eval()` for inference.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.checkpoint_activations = False  # recompute activations in the backward pass
        self.embedding = Embedding(config)
        self.encoder = cast("Iterable[EncoderLayer]", nn.ModuleList(EncoderLayer(config) for _ in range(config.N)))
        self.decoder = cast(
            "Iterable[DecoderLayer]", nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        )
        if not self.embedding.weight_VD.is_meta:  # on the meta device: weights are loaded later
            initialise(self)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Return logits B×T×V for the token after each one of `target_BT`, shifted right."""
        return self.embedding.logits(self.decode(target_BT, self.encode(source_BS)))

    def encode(self, source_BS: Tensor) -> Memory:
        mask = padding_mask(source_BS)
        x_BSD = self.embedding(source_BS, "source")
        for layer in self.encoder:
            x_BSD = self._apply_layer(layer, x_BSD, mask)
        return Memory(x_BSD, mask)

    def decode(self, target_BT: Tensor, memory: Memory) -> Tensor:
        """Return the decoder's states B×T×D, all positions in one parallel pass.

        Targets are padded on the right, so the causal mask alone hides the padding.
        """
        x_BTD: Tensor = self.embedding(target_BT)
        for layer in self.decoder:
            x_BTD = self._apply_layer(layer, x_BTD, memory.states_BSD, memory.mask_B11S)
        return x_BTD

    def attention_weights(self, source_BS: Tensor, target_BT: Tensor) -> AttentionWeights:
        """Return the weights of every head, by the plain formula. Each row sums to 1."""
        mask = padding_mask(source_BS)
        x_BSD, y_BTD = self.embedding(source_BS, "source"), self.embedding(target_BT)
        encoder, decoder, cross = [], [], []
        for layer in self.encoder:
            x_BSD, weights = layer(x_BSD, mask, want_weights=True)
            encoder.append(weights)
        for decoder_layer in self.decoder:
            y_BTD, self_weights, cross_weights = decoder_layer(y_BTD, x_BSD, mask, want_weights=True)
            decoder.append(self_weights)
            cross.append(cross_weights)
        return AttentionWeights(torch.stack(encoder), torch.stack(decoder), torch.stack(cross))

    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def _apply_layer(self, layer: EncoderLayer | DecoderLayer, *inputs: Tensor | None) -> Tensor:
        """Return the states after a layer, with activation checkpointing if it is on.

        `checkpoint` restores the random state, so dropout and the gradient are the same either way.
        """
        recompute = self.checkpoint_activations
        outputs = checkpoint(layer, *inputs, use_reentrant=False) if recompute else layer(*inputs)
        states: Tensor = outputs[0]
        return states


def padding_mask(ids_BS: Tensor) -> Tensor | None:
    """Return the mask B×1×1×S, True for tokens; None if nothing is padded, which is faster."""
    real_BS = ids_BS != PAD
    return None if bool(real_BS.all()) else real_BS[:, None, None, :]


def initialise(model: Transformer) -> None:
    """Initialise all parameters. The paper does not say how.

    Embeddings are normal with standard deviation d_model^-½: multiplied by √d_model they match the size of the
    positions, and as the tied projection they give logits of size 1. Linear layers are Glorot uniform, biases 0. The
    second feed-forward matrix starts at a tenth of that, so that attention dominates a layer at first and training
    starts faster (measured in docs/explanation/deviations.md).
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
    for module in model.modules():
        if isinstance(module, FeedForward):
            nn.init.xavier_uniform_(module.outer.weight, gain=0.1)
    for name, parameter in model.embedding.named_parameters():
        # Learned positions are added unscaled, so they start at the size of the scaled embeddings.
        deviation = {"positions_TD": 1.0, "bias_V": 0.0}.get(name, model.config.d_model**-0.5)
        nn.init.normal_(parameter, std=deviation)
