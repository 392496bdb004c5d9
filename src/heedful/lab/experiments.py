"""All experiments, in the order of the paper."""

from __future__ import annotations

from heedful.lab import computed_experiments, trained_experiments
from heedful.lab.experiment import Experiment

EXPERIMENTS = (
    Experiment(
        "scaling",
        "section 3.2.1",
        "Dot products grow with d_k and push the softmax to where its gradient is extremely small; dividing by √d_k "
        "counteracts this.",
        computed_experiments.scaling,
    ),
    Experiment("heads", "section 3.2.2, Table 3 (A)", "Several heads are better than one.", trained_experiments.heads),
    Experiment("key-size", "section 6.2, Table 3 (B)", "Reducing d_k hurts quality.", trained_experiments.key_size),
    Experiment(
        "order",
        "section 3.5",
        "Without positional encodings the model cannot see word order.",
        computed_experiments.order,
    ),
    Experiment(
        "shifts", "section 3.5", "PE(pos + k) is a linear function of PE(pos), for any k.", computed_experiments.shifts
    ),
    Experiment(
        "positions",
        "section 3.5, Table 3 (E)",
        "Learned positions and sinusoids give nearly the same results.",
        trained_experiments.positions,
    ),
    Experiment(
        "cost",
        "section 4, Table 1",
        "Self-attention is faster than recurrence if the sentence is shorter than d_model.",
        computed_experiments.cost,
    ),
    Experiment("warmup", "section 5.3", "The learning rate needs warmup.", trained_experiments.warmup),
    Experiment("dropout", "section 5.4, Table 3 (D)", "Dropout reduces overfitting.", trained_experiments.dropout),
    Experiment(
        "smoothing",
        "section 5.4",
        "Label smoothing hurts perplexity and improves BLEU.",
        trained_experiments.smoothing,
    ),
    Experiment(
        "search", "section 6.1", "Averaged checkpoints and a beam of 4 translate better.", trained_experiments.search
    ),
    Experiment("size", "section 6.2, Table 3 (C)", "Bigger models are better.", trained_experiments.size),
)
