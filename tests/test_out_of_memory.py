"""Out-of-memory errors are recognised in every wording, with real failures if possible."""

import pytest
import torch

from heedful.errors import is_out_of_memory


def test_real_torch_allocation_failure() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50)
    assert is_out_of_memory(caught.value)


@pytest.mark.parametrize(
    "error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")]
)
def test_other_wordings(error: BaseException) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize("error", [RuntimeError("shapes cannot be multiplied"), ValueError("out of memory"), OSError()])
def test_other_errors_are_not_out_of_memory(error: BaseException) -> None:
    assert not is_out_of_memory(error)
