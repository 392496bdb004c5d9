"""What a model computes for one sentence pair: every step, every head, the search, and why a word was chosen.

The trace is a second forward pass written for reading; the tests compare it with the real one. Nothing here changes a
model: `without_heads` returns another one that shares its weights.
"""
