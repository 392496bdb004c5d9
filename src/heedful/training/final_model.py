"""The end of a run: RUN/model, with the weights and length penalty that validate best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from heedful.atomic_files import clear_unfinished
from heedful.config import DecodingConfig, Recipe
from heedful.decoding.search import Penalty, length_penalty, power_penalty
from heedful.errors import CheckpointError, ModelError
from heedful.formatting import plural
from heedful.storage.file_names import OPTIMIZER
from heedful.storage.model_directory import Model, read_config, read_model, read_tensors, write_model
from heedful.storage.run_directory import RunDirectory, model_of_run
from heedful.training.averaging import averaged_model, steps_to_average
from heedful.training.moving_average import moving_average_weights
from heedful.training.validation import Validation

_ALPHA_STEP = 0.4
_HIGHEST_ALPHA = 3.0
ALPHA_LINES = 500  # of the validation text that alpha is chosen on; beam search is slow
_CLIMBED = 8  # values of alpha that are tried: three to five in each of two forms

PrintStatus = Callable[[str], None]


def write_final_model(run: RunDirectory, recipe: Recipe, newest: int) -> None:
    """Write RUN/model as the average of the last checkpoints (section 6.1)."""
    clear_unfinished(run.path)
    write_model(run.model, _average(run, recipe, newest))


def select_final_model(
    run: RunDirectory, recipe: Recipe, newest: int, validation: Validation, print_status: PrintStatus
) -> None:
    """Write RUN/model with the weights and length penalty that score best on validation.

    A recipe may request either choice or neither; without them the model is the average, with the recipe's alpha.
    """
    model = _average(run, recipe, newest)
    if recipe.training.select_final:
        model = _best_weights(run, recipe, newest, validation, print_status)
    if recipe.decoding.select_alpha:
        model = _with_best_alphas(model, recipe.decoding, validation, print_status)
    clear_unfinished(run.path)
    if recipe.decoding.select_alpha:
        _copy_alphas_to_best(run, model)
    write_model(run.model, model)


def has_final_model(run: RunDirectory, recipe: Recipe, newest: int) -> bool:
    """Return whether RUN/model is of this step and includes every choice of the recipe.

    A killed run may still have the model of an earlier session, and an interrupted one a model without choices.
    """
    try:
        history = read_config(run.model)["history"]
        chosen = {
            "selected": recipe.training.select_final,
            "alpha_scores": recipe.decoding.select_alpha,
        }
        return bool(history["steps"] == newest) and all(key in history for key, asked in chosen.items() if asked)
    except (ModelError, KeyError, TypeError):
        return False


def searches(recipe: Recipe) -> tuple[int, int]:
    """Return how often these choices translate validation text: greedily, and with the beam."""
    candidates = 2 + (recipe.training.average > 1) + bool(recipe.training.ema_decay)
    return candidates * recipe.training.select_final, _CLIMBED * recipe.decoding.select_alpha


def _average(run: RunDirectory, recipe: Recipe, newest: int) -> Model:
    training = recipe.training
    return averaged_model(run, steps_to_average(run, training.average, training.save_every, newest))


def _best_weights(
    run: RunDirectory, recipe: Recipe, newest: int, validation: Validation, print_status: PrintStatus
) -> Model:
    """Return the candidate with the highest BLEU of greedy search on the validation text."""
    scored = [
        (validation.bleu(model.transformer, beam=1), name, model) for name, model in _candidates(run, recipe, newest)
    ]
    bleu, name, model = max(scored, key=lambda candidate: candidate[0])  # the first of equals
    listed = ", ".join(f"{other} {score:.2f}" for score, other, _ in scored)
    print_status(f"final model: {name} (validation BLEU, greedy: {listed})")
    return replace(model, history={**model.history, "steps": newest, "selected": name, "valid_bleu": bleu})


def _candidates(run: RunDirectory, recipe: Recipe, newest: int) -> Iterator[tuple[str, Model]]:
    """Yield the models to choose from, each once."""
    average = _average(run, recipe, newest)
    steps = average.history["averaged_steps"]
    yield "last checkpoint", averaged_model(run, [newest])
    if len(steps) > 1:
        yield f"average of {plural(len(steps), 'checkpoint')}", average
    if recipe.training.ema_decay:
        state = read_tensors(run.checkpoint(newest) / OPTIMIZER, CheckpointError)
        yield "moving average", model_of_run(run, moving_average_weights(state), [newest])
    try:
        best = read_model(run.best)
    except ModelError:  # no validation has succeeded
        return
    if best.history["steps"] != newest:
        history = {**average.history, "averaged_steps": [best.history["steps"]]}
        yield f"checkpoint of step {best.history['steps']:,}", replace(best, history=history)


def _with_best_alphas(model: Model, start: DecodingConfig, validation: Validation, print_status: PrintStatus) -> Model:
    """Return the model with the length penalties of the highest BLEU, by hill climbing.

    The climb starts from the recipe's values. heedful's own search tries both forms, so a model does not depend on
    whether CTranslate2 is installed.
    """

    def scores_of(name: str, penalty: Penalty) -> dict[float, float]:
        found = climb(
            getattr(start, name),
            lambda alpha: validation.bleu(model.transformer, start.beam, alpha, ALPHA_LINES, penalty),
        )
        listed = ", ".join(f"{alpha}: {bleu:.2f}" for alpha, bleu in sorted(found.items()))
        print_status(f"decoding.{name} = {_best(found)} (validation BLEU, beam {start.beam}: {listed})")
        return found

    paper, power = scores_of("alpha", length_penalty), scores_of("power_alpha", power_penalty)
    decoding = replace(model.decoding, alpha=_best(paper), power_alpha=_best(power))
    tried = {"alpha_scores": paper, "power_alpha_scores": power}
    history = {name: {str(alpha): bleu for alpha, bleu in sorted(found.items())} for name, found in tried.items()}
    return replace(model, decoding=decoding, history={**model.history, **history})


def _best(scores: dict[float, float]) -> float:
    """Return the key of the highest score; the first of equals."""
    return max(scores, key=lambda alpha: scores[alpha])


def _copy_alphas_to_best(run: RunDirectory, model: Model) -> None:
    """Store the tuned length penalties in RUN/best too."""
    try:
        best = read_model(run.best)
    except ModelError:  # no validation has succeeded
        return
    write_model(run.best, replace(best, decoding=model.decoding))


def climb(start: float, score: Callable[[float], float]) -> dict[float, float]:
    """Return the scores of `start` and of higher values while they rise, or of lower ones."""
    scores = {start: score(start)}
    for step in (_ALPHA_STEP, -_ALPHA_STEP):
        alpha = round(start + step, 2)
        while 0.0 <= alpha <= _HIGHEST_ALPHA:
            highest = max(scores.values())
            scores[alpha] = score(alpha)
            if scores[alpha] <= highest:
                break
            alpha = round(alpha + step, 2)
        if max(scores.values()) > scores[start]:
            break
    return scores
