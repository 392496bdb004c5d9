"""All experiments, in the order of the paper."""

from __future__ import annotations

from heedful.lab import computed, variations
from heedful.lab.experiment import Experiment

EXPERIMENTS = (
    Experiment(
        "scaling",
        "section 3.2.1",
        "Dot products grow with d_k and push the softmax to where its gradient is extremely small; dividing by √d_k "
        "counteracts this.",
        computed.scaling,
    ),
    Experiment("heads", "section 3.2.2, Table 3 (A)", "Several heads are better than one.", variations.heads),
    Experiment("key-size", "section 6.2, Table 3 (B)", "Reducing d_k hurts the quality.", variations.key_size),
    Experiment(
        "order",
        "section 3.5",
        "Without positional encodings the model cannot see word order.",
        computed.order,
    ),
    Experiment("shifts", "section 3.5", "PE(pos + k) is a linear function of PE(pos), for any k.", computed.shifts),
    Experiment(
        "positions",
        "section 3.5, Table 3 (E)",
        "Learned positions and sinusoids give nearly the same results.",
        variations.positions,
    ),
    Experiment(
        "cost",
        "section 4, Table 1",
        "Self-attention is faster than recurrence if the sentence is shorter than d_model.",
        computed.cost,
    ),
    Experiment("warmup", "section 5.3", "The learning rate needs a warmup.", variations.warmup),
    Experiment("dropout", "section 5.4, Table 3 (D)", "Dropout reduces overfitting.", variations.dropout),
    Experiment(
        "smoothing",
        "section 5.4",
        "Label smoothing hurts perplexity and improves BLEU.",
        variations.smoothing,
    ),
    Experiment("search", "section 6.1", "Averaged checkpoints and a beam of 4 translate better.", variations.search),
    Experiment("size", "section 6.2, Table 3 (C)", "Bigger models are better.", variations.size),
)
