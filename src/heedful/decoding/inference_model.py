"""A model prepared for search."""

from __future__ import annotations

from heedful.decoding.decoder import SearchDecoder
from heedful.decoding.encoder import SearchEncoder
from heedful.decoding.projection_kernels import Precision
from heedful.model.transformer import Transformer


class SearchModel:
    """Encoder and decoder in the layout and precision of search.

    Does not follow later changes of the model.
    """

    def __init__(self, model: Transformer, precision: Precision = "fp32") -> None:
        self.device = model.embedding.weight_VD.device
        self.encoder, self.decoder = SearchEncoder(model, precision), SearchDecoder(model, precision)
