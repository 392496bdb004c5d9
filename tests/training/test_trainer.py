"""One update: accumulation, Adam, clipping, precision, dropout seeds, non-finite values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.config import BOS, EOS, ModelConfig, TrainingConfig
from heedful.data.batches import Batch, pad
from heedful.errors import MachineError, NonFiniteError
from heedful.model.dropout import dropout
from heedful.model.transformer import Transformer
from heedful.training.dropout_schedule import seed_dropout
from heedful.training.loss import batch_loss
from heedful.training.precision import activation_dtype
from heedful.training.progress import StepResult
from heedful.training.schedule import learning_rate
from heedful.training.trainer import Trainer

V = 15
Pair = tuple[list[int], list[int]]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Tiny tensors are slower on several threads, above all beside other tests."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def random_pairs(count: int, seed: int = 0) -> list[Pair]:
    generator = torch.Generator().manual_seed(seed)

    def sentence() -> list[int]:
        length = int(torch.randint(1, 8, (1,), generator=generator))
        return [*torch.randint(4, V, (length,), generator=generator).tolist(), EOS]

    return [(sentence(), sentence()) for _ in range(count)]


def batch_of(pairs: list[Pair], first_line: int = 1) -> Batch:
    targets = [target for _, target in pairs]
    return Batch(
        source_BS=pad([source for source, _ in pairs]),
        target_in_BT=pad([[BOS, *target[:-1]] for target in targets]),
        target_out_BT=pad(targets),
        tokens=sum(map(len, targets)),
        lines=tuple(range(first_line, first_line + len(pairs))),
    )


def small_model(dropout: float = 0.0, dtype: torch.dtype = torch.float64) -> Transformer:
    torch.manual_seed(1)
    return Transformer(ModelConfig(vocab_size=V, N=1, d_model=16, d_ff=24, h=2, dropout=dropout)).to(dtype)


def trainer(dropout: float = 0.0, dtype: torch.dtype = torch.float64, **training: Any) -> Trainer:
    settings: dict[str, Any] = {"warmup_steps": 10, "precision": "fp32"} | training
    return Trainer(small_model(dropout, dtype), TrainingConfig(**settings))


def step_at(one: Trainer, step: int, batches: list[Batch]) -> StepResult:
    """Make the training step with this number, regardless of earlier ones."""
    one.progress.step = step - 1
    return one.train_step(batches)


def watch_gradients(one: Trainer) -> list[list[Tensor]]:
    """Record the gradients that Adam receives at each update."""
    seen: list[list[Tensor]] = []

    (adam,) = one.optimizers
    adam.register_step_pre_hook(
        lambda *_: seen.append([p.grad.clone() for p in one.model.parameters() if p.grad is not None])
    )
    return seen


def weights(model: Transformer) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("parts", [2, 5])
def test_accumulation_matches_one_big_batch(parts: int) -> None:
    pairs = random_pairs(20)
    whole, cut = trainer(), trainer()
    seen_whole, seen_cut = watch_gradients(whole), watch_gradients(cut)
    for step in range(1, 4):
        one = step_at(whole, step, [batch_of(pairs)])
        many = step_at(cut, step, [batch_of(pairs[part::parts]) for part in range(parts)])
        assert many.tokens == one.tokens == sum(len(target) for _, target in pairs)
        for name in ("loss", "nll", "gradient_norm", "learning_rate"):
            assert getattr(many, name) == pytest.approx(getattr(one, name), abs=1e-9)
    for one_step, other_step in zip(seen_whole, seen_cut, strict=True):
        for a, b in zip(one_step, other_step, strict=True):
            torch.testing.assert_close(b, a, rtol=0.0, atol=1e-9)
    for a, b in zip(weights(whole.model), weights(cut.model), strict=True):
        torch.testing.assert_close(b, a, rtol=0.0, atol=1e-7)


def test_gradient_is_of_the_mean_loss_over_tokens() -> None:
    batch = batch_of(random_pairs(6))
    one = trainer(label_smoothing=0.2)
    expected = batch_loss(one.model, batch, 0.2)
    gradients = torch.autograd.grad(expected.smoothed / batch.tokens, list(one.model.parameters()))
    seen = watch_gradients(one)
    result = step_at(one, 1, [batch])
    for a, b in zip(gradients, seen[0], strict=True):
        torch.testing.assert_close(b, a, rtol=0.0, atol=1e-12)
    assert result.loss == pytest.approx(expected.smoothed.item() / batch.tokens)
    assert result.nll == pytest.approx(expected.nll.item() / batch.tokens)
    assert result.gradient_norm == pytest.approx(math.sqrt(sum((g**2).sum().item() for g in gradients)))


def test_adam_with_the_papers_settings_by_hand() -> None:
    """β₁ = 0.9, β₂ = 0.98, ε = 1e-9, the rate of Eq. 3, no weight decay."""
    one = trainer(learning_rate=2.0)
    seen = watch_gradients(one)
    expected = weights(one.model)
    m, v = ([torch.zeros_like(w) for w in expected] for _ in range(2))
    for step in range(1, 6):
        step_at(one, step, [batch_of(random_pairs(4, seed=step))])
        rate = 2.0 * 16**-0.5 * min(step**-0.5, step * 10**-1.5)
        for i, gradient in enumerate(seen[-1]):
            m[i] = 0.9 * m[i] + 0.1 * gradient
            v[i] = 0.98 * v[i] + 0.02 * gradient**2
            m_hat, v_hat = m[i] / (1 - 0.9**step), v[i] / (1 - 0.98**step)
            expected[i] = expected[i] - rate * m_hat / (v_hat.sqrt() + 1e-9)
    for ours, by_hand in zip(weights(one.model), expected, strict=True):
        torch.testing.assert_close(ours, by_hand, rtol=0.0, atol=1e-9)


def test_learning_rate_follows_the_step() -> None:
    one = trainer()
    for step in (1, 10, 40):
        result = step_at(one, step, [batch_of(random_pairs(2))])
        assert result.learning_rate == learning_rate(step, 16, 10)
        assert one.optimizers[0].param_groups[0]["lr"] == result.learning_rate


def test_learning_rate_cools_down() -> None:
    one = trainer(steps=40, cooldown_steps=10)
    rates = [step_at(one, step, [batch_of(random_pairs(2))]).learning_rate for step in (31, 36, 40)]
    assert rates == pytest.approx(
        [learning_rate(31, 16, 10), 0.5 * learning_rate(36, 16, 10), 0.1 * learning_rate(40, 16, 10)]
    )


def dropouts(model: Transformer) -> set[float]:
    """Return every dropout rate in the model."""
    return {module.dropout for module in model.modules() if isinstance(getattr(module, "dropout", None), float)}


def test_dropout_warms_up() -> None:
    """Every module follows, and an update in warmup is one of a model with that dropout."""
    batch = batch_of(random_pairs(6))
    rates = {"dropout": 0.4, "attention_dropout": 0.2, "word_dropout": 0.8}
    model = Transformer(ModelConfig(vocab_size=V, N=1, d_model=16, d_ff=24, h=2, **rates))
    warming = Trainer(model, TrainingConfig(warmup_steps=10, dropout_warmup_steps=8, precision="fp32"))
    for step, expected, words in ((2, {0.1, 0.05}, 0.2), (8, {0.4, 0.2}, 0.8), (9, {0.4, 0.2}, 0.8)):
        step_at(warming, step, [batch])
        assert dropouts(model) == expected
        assert model.embedding.word_dropout == words
    one, other = trainer(dropout=0.4, dropout_warmup_steps=8), trainer(dropout=0.1)
    losses = [step_at(each, 2, [batch]).loss for each in (one, other, trainer(dropout=0.4))]
    assert losses[0] == losses[1] != losses[2]


def test_trial_batch_uses_full_dropout() -> None:
    one = trainer(dropout=0.4, dropout_warmup_steps=8)
    one.try_batch(batch_of(random_pairs(2)))
    assert dropouts(one.model) == {0.4, 0.0}


def test_the_loss_falls() -> None:
    one = trainer(dtype=torch.float32)
    batch = batch_of(random_pairs(6))
    losses = [step_at(one, step, [batch]).loss for step in range(1, 60)]
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_clip_norm(share: float) -> None:
    batch = batch_of(random_pairs(6))
    free = trainer()
    unclipped = watch_gradients(free)
    norm = step_at(free, 1, [batch]).gradient_norm
    limited = trainer(clip_norm=share * norm)
    clipped = watch_gradients(limited)
    assert step_at(limited, 1, [batch]).gradient_norm == pytest.approx(norm)  # the norm that is logged is the true one
    for a, b in zip(unclipped[0], clipped[0], strict=True):
        torch.testing.assert_close(b, a * min(1.0, share), rtol=1e-5, atol=1e-12)


def draw_dropout(seed: int, step: int, part: int) -> Tensor:
    seed_dropout(seed, step, part)
    return dropout(torch.ones(200), 0.5)


def test_dropout_is_a_function_of_seed_step_and_part() -> None:
    first = draw_dropout(1, 2, 3)
    torch.rand(17)
    draws = {(s, t, p): draw_dropout(s, t, p) for s in (1, 2, 3) for t in (1, 2, 3) for p in (0, 1, 3)}
    assert torch.equal(draws[1, 2, 3], first)
    assert len({tuple(draw.tolist()) for draw in draws.values()}) == len(draws)


def test_update_does_not_depend_on_earlier_random_draws() -> None:
    batches = [batch_of(random_pairs(4, seed)) for seed in (1, 2)]
    one, other, different = trainer(dropout=0.3), trainer(dropout=0.3), trainer(dropout=0.3, seed=2)
    first = step_at(one, 7, batches)
    torch.rand(100)
    other.model.eval()  # as after a validation
    assert step_at(other, 7, batches) == first
    assert same(weights(one.model), weights(other.model))
    assert step_at(different, 7, batches).loss != first.loss


def test_accumulated_batches_have_different_dropout() -> None:
    batch = batch_of(random_pairs(4))
    once, twice = (step_at(trainer(dropout=0.3), 1, [batch] * count).loss for count in (1, 2))
    assert once != pytest.approx(twice, abs=1e-6)


def spoil(model: Transformer, kind: str) -> None:
    if kind == "loss":
        with torch.no_grad():
            model.embedding.weight_VD[4:] = math.nan
    else:
        next(iter(model.decoder)).feed_forward.inner.bias.register_hook(lambda g: g * math.inf)


@pytest.mark.parametrize("kind", ["loss", "gradient"])
def test_non_finite_values_stop_before_the_update(kind: str) -> None:
    one = trainer()
    spoil(one.model, kind)
    before = weights(one.model)
    batches = [batch_of(random_pairs(3), first_line=101), batch_of(random_pairs(2), first_line=501)]
    with pytest.raises(NonFiniteError) as caught:
        step_at(one, 42, batches)
    for a, b in zip(before, weights(one.model), strict=True):
        torch.testing.assert_close(b, a, rtol=0.0, atol=0.0, equal_nan=True)
    assert not one.optimizers[0].state
    message = str(caught.value)
    assert message.startswith(f"Step 42: the {kind}")
    assert "lines 101, 102, 103, 501, 502 of the training text" in message
    assert 'training.non_finite = "skip"' in message


def test_the_message_lists_ten_lines() -> None:
    one = trainer()
    spoil(one.model, "loss")
    with pytest.raises(NonFiniteError, match=r"lines 1, 2, 3, 4, 5, 6, 51, 52, 53, 54 … of"):
        step_at(one, 1, [batch_of(random_pairs(6), first_line=1), batch_of(random_pairs(6), first_line=51)])
    with pytest.raises(NonFiniteError, match=r"lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 of"):
        step_at(one, 1, [batch_of(random_pairs(10))])


def test_skipped_update_changes_nothing_and_is_reported() -> None:
    batch = batch_of(random_pairs(3))
    one, undisturbed = trainer(non_finite="skip"), trainer(non_finite="skip")
    assert not step_at(one, 1, [batch]).skipped
    step_at(undisturbed, 1, [batch])
    bias = next(iter(one.model.decoder)).feed_forward.inner.bias
    hook = bias.register_hook(lambda g: g * math.nan)
    before = weights(one.model)
    result = step_at(one, 2, [batch])
    assert result.skipped
    assert math.isfinite(result.loss)
    assert same(before, weights(one.model))
    hook.remove()
    # Neither Adam's moments nor a gradient left behind remembers it.
    assert step_at(one, 3, [batch]) == step_at(undisturbed, 3, [batch])
    assert same(weights(one.model), weights(undisturbed.model))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision(precision: str) -> None:
    batch = batch_of(random_pairs(6))
    half, single = trainer(dtype=torch.float32, precision=precision), trainer(dtype=torch.float32)
    gradients, expected = watch_gradients(half), watch_gradients(single)
    result, in_float32 = step_at(half, 1, [batch]), step_at(single, 1, [batch])
    assert result.loss == pytest.approx(in_float32.loss, rel=0.02)
    assert result.loss != in_float32.loss
    for a, b in zip(gradients[0], expected[0], strict=True):
        assert (a - b).norm() <= 0.1 * b.norm() + 1e-3
    losses = [step_at(half, step, [batch]).loss for step in range(2, 40)]
    assert losses[-1] < losses[0] / 1.5
    assert all(p.dtype == torch.float32 for p in half.model.parameters())
    state = [tensor for moments in half.optimizers[0].state.values() for tensor in moments.values()]
    assert {tensor.dtype for tensor in state} == {torch.float32}


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_is_for_training_only(precision: str) -> None:
    """Validation and inference compute in the type of the weights."""
    half, batch = trainer(dtype=torch.float32, precision=precision).model, batch_of(random_pairs(6))
    with torch.inference_mode():
        dtype = activation_dtype(precision, torch.device("cpu"))
        assert half.train()(batch.source_BS, batch.target_in_BT).dtype == dtype
        logits = half.eval()(batch.source_BS, batch.target_in_BT)
        expected = small_model(dtype=torch.float32).eval()(batch.source_BS, batch.target_in_BT)
    assert torch.equal(logits, expected)


def test_gradients_of_accumulated_bf16_batches_are_added_in_float32() -> None:
    """A large gradient, then 64 small ones: a sum in bf16 would lose all the small ones."""
    model = small_model(dtype=torch.float32).train()
    model.embedding.training_dtype = torch.bfloat16
    layer = next(iter(model.encoder)).feed_forward.inner
    x = torch.ones(1, 16, dtype=torch.bfloat16)
    for scale in [1.0, *[2.0**-10] * 64]:
        (layer(x).sum() * scale).backward()
    for gradient in (layer.weight.grad, layer.bias.grad):
        assert gradient is not None
        assert gradient.dtype == torch.float32
        assert torch.equal(gradient, torch.full_like(gradient, 1 + 64 * 2.0**-10))
    in_bf16 = torch.tensor(1.0, dtype=torch.bfloat16)
    for _ in range(64):  # the control
        in_bf16 += 2.0**-10
    assert in_bf16 == 1


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_accumulated_gradients_are_the_float32_sum_of_the_batches(precision: str) -> None:
    """Whatever the precision of each batch: their sum is as exact as float32."""
    batches = [batch_of(random_pairs(3, seed)) for seed in range(12)]
    tokens = sum(batch.tokens for batch in batches)
    one = trainer(dtype=torch.float32, precision=precision)
    seen = watch_gradients(one)
    parameters = list(one.model.parameters())
    exact = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
    for batch in batches:
        one.model.train()
        gradients = torch.autograd.grad(batch_loss(one.model, batch, 0.1).smoothed / tokens, parameters)
        exact = [total + gradient for total, gradient in zip(exact, gradients, strict=True)]
    step_at(one, 1, batches)
    largest = max(gradient.abs().max().item() for gradient in exact)
    for found, expected in zip(seen[0], exact, strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6 * largest)


def test_fp16_lowers_its_scale_for_an_infinite_gradient() -> None:
    one = trainer(dtype=torch.float32, precision="fp16")
    batch = batch_of(random_pairs(3))
    step_at(one, 1, [batch])
    spoil(one.model, "gradient")
    before, scale = weights(one.model), one.scaler.get_scale()
    assert step_at(one, 2, [batch]).skipped
    assert same(before, weights(one.model))
    assert one.scaler.get_scale() == scale / 2


def test_fp16_stops_where_the_loss_itself_is_not_finite() -> None:
    """No loss scale helps: without the check every later step would be skipped."""
    one = trainer(dtype=torch.float32, precision="fp16")
    spoil(one.model, "loss")
    with pytest.raises(NonFiniteError, match="Step 3: the loss is nan"):
        step_at(one, 3, [batch_of(random_pairs(3))])


def test_trying_a_batch_changes_nothing() -> None:
    model = small_model(dtype=torch.float32)
    before = weights(model)
    Trainer(model, TrainingConfig(precision="fp32")).try_batch(batch_of(random_pairs(5)))
    assert same(before, weights(model))
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("error", [RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError()], ids=str)
def test_out_of_memory_names_the_longest_sentence_and_what_to_lower(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("heedful.training.parallel.batch_loss", fail)
    batch = batch_of([([5, EOS], [5, EOS]), ([5, 6, 7, EOS], [5, 6, EOS]), ([5, EOS], [5, 6, 7, EOS])], first_line=7)
    with pytest.raises(
        MachineError, match=r"at step 3: 3 pairs, padded to 4 source and 4 target .* line 8 of"
    ) as caught:
        step_at(trainer(), 3, [batch])
    assert caught.value.exit_code == 4
    assert "lower training.batch_tokens" in str(caught.value)
    with pytest.raises(MachineError, match="before the first step, with the largest batch"):
        trainer().try_batch(batch)


def test_other_errors_of_a_batch_pass_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("heedful.training.parallel.batch_loss", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        step_at(trainer(), 1, [batch_of(random_pairs(2))])
