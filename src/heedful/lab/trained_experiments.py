"""Experiments with trained variants.

There is one run per variant, so small differences are noise.
"""

from __future__ import annotations

from math import exp

from heedful.formatting import plural
from heedful.lab.experiment import Curve, Curves, Finding, Setting
from heedful.lab.variant_training import Settings, Trained, Verdict, bleu_on_test, compared, judged, variants


def _best(found: list[Trained]) -> Trained:
    return min(found, key=lambda one: one.nll)


def _heads(found: list[Trained]) -> Verdict:
    single, best = found[0], _best(found)
    return best is not single, f"the best is {best.name}, {best.bleu - single.bleu:+.1f} BLEU compared with one head."


heads = compared({plural(h, "head"): {"model.h": h} for h in (1, 4, 16)}, _heads)


def _key_size(found: list[Trained]) -> Verdict:
    full, *smaller = found
    differences = ", ".join(f"{one.name} {one.nll - full.nll:+.3f}" for one in smaller)
    return all(one.nll > full.nll for one in smaller), f"nats per token, compared with {full.name}: {differences}."


key_size = compared({f"d_k = {d_k}": {"model.d_k": d_k, "model.d_v": 16} for d_k in (16, 4, 2)}, _key_size)


def _size(found: list[Trained]) -> Verdict:
    in_order = sorted(found, key=lambda one: one.parameters)
    losses = [one.nll for one in in_order]
    least, most = in_order[0].parameters, in_order[-1].parameters
    return losses == sorted(losses, reverse=True), (
        f"from {least:,} to {most:,} parameters, the validation loss goes from {losses[0]:.3f} to {losses[-1]:.3f} "
        "nats per token."
    )


def _of_size(N: int, d_model: int) -> Settings:
    return {"model.N": N, "model.d_model": d_model, "model.d_ff": 4 * d_model}


size = compared({f"N = {N}, d_model = {d}": _of_size(N, d) for N, d in ((1, 32), (2, 32), (2, 64))}, _size)


def _dropout(found: list[Trained]) -> Verdict:
    none, *some = found
    best = _best(some)
    return best.nll < none.nll, (
        f"without dropout, the validation loss is {none.nll - none.training_nll:.2f} nats per token above the training "
        f"loss; {best.name} changes it from {none.nll:.3f} to {best.nll:.3f}."
    )


_FEW = {"data.builtin_pairs": 1_500}  # few enough to be memorised
dropout = compared({f"dropout {p}": {"model.dropout": p, **_FEW} for p in (0.0, 0.1, 0.3)}, _dropout)


def _positions(found: list[Trained]) -> Verdict:
    difference = found[1].nll - found[0].nll
    return abs(difference) < 0.05, f"learned positions differ by {difference:+.3f} nats per token."


positions = compared({kind: {"model.positions": kind} for kind in ("sinusoidal", "learned")}, _positions)


def _smoothing(found: list[Trained]) -> Verdict:
    hard, smooth = found
    return smooth.nll > hard.nll and smooth.bleu >= hard.bleu, (
        f"label smoothing changes perplexity from {exp(hard.nll):.2f} to {exp(smooth.nll):.2f}, and BLEU from "
        f"{hard.bleu:.1f} to {smooth.bleu:.1f}."
    )


smoothing = compared({f"ε = {e}": {"training.label_smoothing": e} for e in (0.0, 0.1)}, _smoothing)


def _warmup(found: list[Trained]) -> Verdict:
    cold, warm = found
    return warm.nll < cold.nll, f"{cold.nll:.3f} nats per token without warmup, {warm.nll:.3f} with it."


# From step 100 both have the same learning rate (Eq. 3); before, the first decreases to it and the second increases.
warmup = compared(
    {f"{plural(steps, 'step')} of warmup": {"training.warmup_steps": steps} for steps in (1, 100)}, _warmup
)


def search(setting: Setting) -> Finding:
    """Compare the last checkpoint and the average of five, with greedy and beam search."""
    [one] = variants(setting, {"one model": {}})
    beams, checkpoints = (1, 2, 4, 8), ("last", "averaged")
    scores = {
        (checkpoint, beam): bleu_on_test(setting, one.path, checkpoint, beam=beam)
        for checkpoint in checkpoints
        for beam in beams
    }
    rows = [[checkpoint, str(beam), f"{score:.2f}"] for (checkpoint, beam), score in scores.items()]
    held = scores["averaged", 4] > scores["last", 4] and scores["averaged", 4] > scores["averaged", 1]
    verdict = (
        f"averaging changes BLEU by {scores['averaged', 4] - scores['last', 4]:+.2f} with beam 4; beam 4 instead of "
        f"greedy search changes it by {scores['averaged', 4] - scores['averaged', 1]:+.2f}."
    )
    curves = [Curve(name, beams, [scores[name, beam] for beam in beams]) for name in checkpoints]
    figure = Curves(curves, "beam width", "test BLEU", log_x=True)
    return Finding(("checkpoint", "beam", "test BLEU"), rows, *judged(setting, held, verdict), figure)
