"""The Transformer (Figure 1): an encoder and a decoder of N layers around one embedding."""

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
    """The encoder's output, and which of its positions are not padding (None: all)."""

    states_BSD: Tensor
    mask_B11S: Tensor | None


class AttentionWeights(NamedTuple):
    """Every head of every layer of the three attentions (section 3.2.3); each row sums to 1."""

    encoder_NBHSS: Tensor
    decoder_NBHTT: Tensor
    cross_NBHTS: Tensor


class Transformer(nn.Module):
    """Section 3, in training mode at once like every module of torch: call `.eval()` for use."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.checkpoint_activations = False  # for training; the model is the same with and without
        self.embedding = Embedding(config)
        self.encoder = cast("Iterable[EncoderLayer]", nn.ModuleList(EncoderLayer(config) for _ in range(config.N)))
        self.decoder = cast("Iterable[DecoderLayer]", nn.ModuleList(DecoderLayer(config) for _ in range(config.N)))
        if not self.embedding.weight_VD.is_meta:  # without memory yet: weights will come from a file
            initialise(self)

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """Logits B×T×V of the token after each of `target_BT`, a target shifted right behind the start symbol."""
        return self.embedding.logits(self.decode(target_BT, self.encode(source_BS)))

    def encode(self, source_BS: Tensor) -> Memory:
        mask = padding_mask(source_BS)
        x_BSD = self.embedding(source_BS)
        for layer in self.encoder:
            x_BSD = self._after(layer, x_BSD, mask)
        return Memory(x_BSD, mask)

    def decode(self, target_BT: Tensor, memory: Memory) -> Tensor:
        """The decoder's states B×T×D, all positions in one parallel pass.

        Targets are padded on the right, so that the causal mask alone keeps padding out of what is read.
        """
        x_BTD: Tensor = self.embedding(target_BT)
        for layer in self.decoder:
            x_BTD = self._after(layer, x_BTD, memory.states_BSD, memory.mask_B11S)
        return x_BTD

    def attention_weights(self, source_BS: Tensor, target_BT: Tensor) -> AttentionWeights:
        """What every head attends to, by the plain formula."""
        mask = padding_mask(source_BS)
        x_BSD, y_BTD = self.embedding(source_BS), self.embedding(target_BT)
        encoder, decoder, cross = [], [], []
        for layer in self.encoder:
            x_BSD, weights = layer(x_BSD, mask, want_weights=True)
            encoder.append(weights)
        for above in self.decoder:
            y_BTD, own, other = above(y_BTD, x_BSD, mask, want_weights=True)
            decoder.append(own)
            cross.append(other)
        return AttentionWeights(torch.stack(encoder), torch.stack(decoder), torch.stack(cross))

    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def _after(self, layer: EncoderLayer | DecoderLayer, *inputs: Tensor | None) -> Tensor:
        """The states after a layer; what its gradient needs is kept, or computed again in the backward pass.

        Again: from the same inputs and the same random state, so that dropout and the gradient are the same.
        """
        again = self.checkpoint_activations
        outputs = checkpoint(layer, *inputs, use_reentrant=False) if again else layer(*inputs)
        states: Tensor = outputs[0]
        return states


def padding_mask(ids_BS: Tensor) -> Tensor | None:
    """B×1×1×S, True where there is a token; None where there is no padding, which is faster."""
    real_BS = ids_BS != PAD
    return None if bool(real_BS.all()) else real_BS[:, None, None, :]


def initialise(model: Transformer) -> None:
    """All of the initialisation; the paper is silent about it.

    Embeddings normal with standard deviation d_model^-½, so that times √d_model they have the size of the positions
    and, as the tied projection, give logits of size 1; linear layers Glorot uniform; biases 0. The second matrix of the
    feed-forward networks has a tenth of that size: at first a layer is attention and little else, and learns sooner
    where to look (docs/explanation/deviations.md has what that is worth).
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
    for module in model.modules():
        if isinstance(module, FeedForward):
            nn.init.xavier_uniform_(module.outer.weight, gain=0.1)
    for name, parameter in model.embedding.named_parameters():
        # Learned positions are added as they are, so they get the size of the scaled embeddings at once.
        deviation = model.config.d_model**-0.5 if name == "weight_VD" else 1.0
        nn.init.normal_(parameter, std=deviation)
