"""The model of section 3: attention, layers, embeddings and Transformer (Figure 1).

Tensor names end in their shape: `q_BHTK`, `logits_BTV`. One legend for the whole code base:

    B batch · S source length · T target length · D d_model · H heads · K width of a head (d_k, or d_v for values)
    E all heads side by side, H·K · F d_ff · V vocabulary · W beam width · R rows, B·W · N layers
    P tokens of a batch without padding · C tokens of a chunk

Masks are boolean, and True means "may attend".
"""
