"""What a model computes for one sentence pair: steps, heads, search and word choices.

The trace is a second forward pass written for reading; the tests compare it with the real one. Nothing here changes a
model: `without_heads` returns another one that shares its weights.
"""
