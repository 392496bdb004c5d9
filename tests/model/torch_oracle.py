"""torch's own modules with the same weights: the oracle of model/."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.model.attention import MultiHeadAttention
from heedful.model.layers import AddAndNorm, DecoderLayer, EncoderLayer, FeedForward
from heedful.model.transformer import Transformer

M = TypeVar("M", bound=nn.Module)


def small(**changes: Any) -> ModelConfig:
    """Odd sizes, so that a transposed or confused dimension cannot pass."""
    shape: dict[str, Any] = {"vocab_size": 13, "N": 2, "d_model": 12, "d_ff": 20, "h": 3, "dropout": 0.0}
    return ModelConfig(**(shape | changes))


def randomised(module: M, seed: int = 0) -> M:
    """Randomise all parameters, in float64: zero biases and unit norms would hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64) + 0.1)
    return module


def twin_attention(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    d_model = ours.output.out_features
    theirs = nn.MultiheadAttention(d_model, ours.h, batch_first=True, dtype=torch.float64)
    _copy_attention(ours, theirs)
    return theirs.eval()


def twin_encoder_layer(ours: EncoderLayer) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(*_sizes(ours), **_POST_NORM)
    _copy_encoder_layer(ours, theirs)
    return theirs


def twin_decoder_layer(ours: DecoderLayer) -> nn.TransformerDecoderLayer:
    theirs = nn.TransformerDecoderLayer(*_sizes(ours), **_POST_NORM)
    _copy_decoder_layer(ours, theirs)
    return theirs


def twin_transformer(ours: Transformer) -> nn.Transformer:
    """Return the two stacks of `nn.Transformer`, without its extra final norms."""
    config = ours.config
    sizes = config.d_model, config.h, config.d_ff
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(*sizes, **_POST_NORM), config.N, norm=None, enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*sizes, **_POST_NORM), config.decoder_layers, norm=None)
    theirs = nn.Transformer(config.d_model, config.h, custom_encoder=encoder, custom_decoder=decoder, batch_first=True)
    # Only now: the constructor draws all weights anew.
    for own_encoder_layer, encoder_layer in zip(ours.encoder, encoder.layers, strict=True):
        _copy_encoder_layer(own_encoder_layer, encoder_layer)
    for own_decoder_layer, decoder_layer in zip(ours.decoder, decoder.layers, strict=True):
        _copy_decoder_layer(own_decoder_layer, decoder_layer)
    return theirs


def causal(length: int) -> Tensor:
    """Torch's convention: True = may NOT attend."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


_POST_NORM: dict[str, Any] = {"dropout": 0.0, "batch_first": True, "norm_first": False, "dtype": torch.float64}


def _sizes(layer: EncoderLayer | DecoderLayer) -> tuple[int, int, int]:
    return layer.feed_forward.inner.in_features, layer.self_attention.h, layer.feed_forward.inner.out_features


def _copy_encoder_layer(ours: EncoderLayer, theirs: Any) -> None:
    _copy_attention(ours.self_attention, theirs.self_attn)
    _copy_feed_forward(ours.feed_forward, theirs)
    _copy_norms(theirs, ours.after_self_attention, ours.after_feed_forward)


def _copy_decoder_layer(ours: DecoderLayer, theirs: Any) -> None:
    _copy_attention(ours.self_attention, theirs.self_attn)
    _copy_attention(ours.cross_attention, theirs.multihead_attn)
    _copy_feed_forward(ours.feed_forward, theirs)
    _copy_norms(theirs, ours.after_self_attention, ours.after_cross_attention, ours.after_feed_forward)


@torch.no_grad()
def _copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    projections = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
    theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def _copy_feed_forward(ours: FeedForward, theirs: Any) -> None:
    theirs.linear1.load_state_dict(ours.inner.state_dict())
    theirs.linear2.load_state_dict(ours.outer.state_dict())


def _copy_norms(theirs: nn.Module, *ours: AddAndNorm) -> None:
    for number, add_and_norm in enumerate(ours, start=1):
        theirs.get_submodule(f"norm{number}").load_state_dict(add_and_norm.norm.state_dict())
