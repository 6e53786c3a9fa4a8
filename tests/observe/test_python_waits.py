"""How often Python's own operations on a device tensor make the host wait: on the simulated device as on CUDA."""

from __future__ import annotations

import copy
import io
import math
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.9")
numpy = pytest.importorskip("numpy")

from perflint.observe.recording.session import Wanted, observing  # noqa: E402


def _waits(statement: str) -> int:
    with observing(Wanted(coverage=False)) as session:
        x = torch.arange(16.0).reshape(4, 4).sin().cuda()
        names: dict[str, Any] = {
            "copy": copy,
            "functional": torch.nn.functional,
            "io": io,
            "math": math,
            "np": numpy,
            "pickle": pickle,
            "rnn": torch.nn.utils.rnn,
            "torch": torch,
            "x": x,
            "s": x.sum().abs() + 2.0,
            "k": torch.tensor(2).cuda(),
            "n": torch.tensor([2, 1, 0, 3, 1, 1, 2, 0]).cuda(),
            "m": (torch.arange(16).reshape(4, 4) % 7 == 1).cuda(),
            "lengths": torch.tensor([4, 3, 2, 1]),
            "positions": torch.tensor([0, 1]),
            "mask": torch.tensor([True, False, True, False]),
            "scores": torch.rand(5, 2, 4).log_softmax(-1).cuda(),
            "labels": torch.ones(2, 2, dtype=torch.long).cuda(),
        }
        session.recorder.end_step()
        exec(statement, names)
        session.recorder.end_step()
    return session.observation().totals[1].waits


@pytest.mark.parametrize(
    ("statement", "waits"),
    [
        # one value
        ("bool(s)", 1),
        ("int(s)", 1),
        ("float(s)", 1),
        ("complex(s)", 1),
        ("s.item()", 1),
        ("s.is_nonzero()", 1),
        ("not s", 1),
        ("assert s", 1),
        ("1 if s > 3 else 2", 1),
        ("s and s", 1),
        ("math.sqrt(s)", 1),
        ("math.isnan(s)", 1),
        ("s == s", 0),
        ("abs(s)", 0),
        ("hash(s)", 0),
        ("sum([s, s])", 0),
        # text
        ("f'{s}'", 1),
        ("f'{s:.2f}'", 1),
        ("'%.2f' % s", 1),
        ("format(s, '.2f')", 1),
        # comparisons of Python's own: one for each pair that is compared
        ("max([s, s, s])", 2),
        ("min(s, s)", 1),
        ("sorted([s, s, s])", 2),
        ("s in [s]", 0),
        ("s in [s + 1, s]", 1),
        ("1.0 in x", 1),
        ("any(m[0])", 2),
        # all values
        ("x.tolist()", 1),
        ("x.cpu()", 1),
        ("np.asarray(x.cpu())", 1),
        ("x.cpu().numpy()", 1),
        ("[float(v) for v in x[0]]", 4),
        ("list(x)", 0),
        ("len(x)", 0),
        # slices, positions and sizes
        ("x[:k]", 1),
        ("x[k:k]", 2),
        ("x[k]", 1),
        ("x[0, k]", 1),
        ("range(k)", 1),
        ("[0, 1, 2][k]", 1),
        ("torch.zeros(k)", 1),
        ("torch.zeros(k, k, device='cuda')", 2),
        ("torch.arange(k, device='cuda')", 1),
        ("x.view(k, -1)", 1),
        ("x.repeat(k, 1)", 1),
        ("x.topk(k)", 1),
        ("x[n[:2]]", 0),
        ("x[[0, 1]]", 1),
        ("x[positions]", 1),
        ("x[mask]", 0),
        ("x[m]", 1),
        ("torch.where(m)", 1),
        # values put into a tensor
        ("x[m] = 0.0", 0),
        ("x[m] = s", 1),
        ("x[0] = 1.0", 0),
        ("x[0, 0] = 1.0", 1),
        ("x[0] = s", 0),
        ("x.fill_(s)", 0),
        ("x.masked_fill(m, s)", 0),
        ("torch.full((2,), s, device='cuda')", 1),
        # tensors of numbers
        ("torch.tensor(1.0, device='cuda')", 1),
        ("x.new_tensor([1.0, 2.0])", 1),
        ("torch.tensor([s, s])", 2),
        ("torch.tensor([s, s], device='cuda')", 3),
        ("torch.stack([s, s])", 0),
        # comparisons of tensors
        ("torch.equal(x, x + 1)", 1),
        ("torch.allclose(x, x)", 1),
        ("torch.isclose(x, x)", 0),
        ("torch.any(m)", 0),
        # copies and pickles
        ("copy.copy(x)", 0),
        ("copy.deepcopy(x)", 0),
        ("pickle.dumps(x)", 1),
        ("torch.save(x, io.BytesIO())", 1),
        # sequences
        ("rnn.pad_sequence([x[0], x[1]])", 0),
        ("rnn.pack_padded_sequence(x[..., None], lengths, batch_first=True)", 0),
        ("rnn.pack_padded_sequence(x[..., None], (n[:4] + 1).cpu(), batch_first=True, enforce_sorted=False)", 2),
        # linear algebra, of which the pieces read
        ("torch.linalg.inv(x + 9 * torch.eye(4, device='cuda'))", 1),
        ("torch.linalg.solve(x + 9 * torch.eye(4, device='cuda'), x)", 1),
        ("torch.linalg.det(x)", 0),
        # losses and checks
        ("functional.one_hot(n)", 1),
        ("functional.one_hot(n, 8)", 0),
        ("torch.distributions.Categorical(logits=x)", 1),
        ("torch.distributions.Categorical(logits=x, validate_args=False)", 0),
        ("torch.distributions.Categorical(logits=x, validate_args=False).sample()", 0),
    ],
)
def test_waits_of(statement: str, waits: int) -> None:
    assert _waits(statement) == waits


def test_lengths_of_ctc_loss_on_the_device_are_copied_to_the_host_first() -> None:
    loss = "functional.ctc_loss(scores, labels, torch.tensor([5, 5]){0}, torch.tensor([2, 2]){0})"
    on_host = _waits(loss.format(""))
    assert on_host >= 3
    # Two copies to put them there, and two back.
    assert _waits(loss.format(".cuda()")) == on_host + 4


def test_ctc_loss_copies_its_lengths_in_the_backward_pass_too() -> None:
    loss = "scores.requires_grad_(); loss = functional.ctc_loss(scores, labels, [5, 5], [2, 2], reduction='sum')"
    forward = _waits(loss)
    assert forward >= 3  # some releases look at the targets on the host as well
    assert _waits(f"{loss}; loss.backward()") == forward + 3


def test_text_of_a_tensor_reads_every_value() -> None:
    """For its width each value that is not zero, then each row; sixteen values, of which one is zero."""
    for text in ("repr(x)", "str(x)", "f'{x}'", "print(x, file=io.StringIO())"):
        assert _waits(text) > 16
    assert _waits("repr(x)") == _waits("str(x)")
    assert 3 < _waits("repr(s)") < _waits("repr(x)")
