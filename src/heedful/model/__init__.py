"""Section 3 of the paper, one file a part: attention (3.2), layers (3.1, 3.3), embeddings (3.4, 3.5), transformer.

Shapes stand in the names: `q_BHTK`, `logits_BTV`. One legend for all of heedful:

    B batch · S source length · T target length · D d_model · H heads · K width of a head (d_k, or d_v for values)
    F d_ff · V vocabulary · W beam width · R rows, B·W · P tokens of a batch, padding left out · N layers

One convention for masks: boolean, True = may attend.
"""
