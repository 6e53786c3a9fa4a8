"""TPL507: the eigenvectors of a Gram matrix, where the factor itself would do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Impact, Rule, Tier, argument
from perflint.api.layers import factor_of_gram

_TARGETS = (
    "torch.linalg.eigh",
    "torch.linalg.eigvalsh",
    "torch.linalg.eig",
    "torch.symeig",
    "numpy.linalg.eigh",
    "numpy.linalg.eigvalsh",
    "numpy.linalg.eig",
    "scipy.linalg.eigh",
    "scipy.linalg.eigvalsh",
)


class LowRankEigh(Rule):
    """`eigh(X.T @ X)` decomposes a large square matrix where an SVD of `X` gives the same result.

    What it does

    Reports `torch.linalg.eigh` and `np.linalg.eigh` of a product of a matrix with its own transpose.

    Why is this slow?

    For `X` of N rows and d columns the product is d x d for every N, and its decomposition costs d^3. Its rank is at
    most N, so with few rows nearly all of the result is zeros. The SVD of `X` gives the same eigenvectors and,
    squared, the same eigenvalues. It is also more accurate, because the product squares the condition number.

    What to do

    Write `_, s, vh = torch.linalg.svd(X, full_matrices=False)`. The eigenvalues are `s**2`, divided by the divisor of
    the product; the largest comes first, where `eigh` returns the smallest first. The eigenvectors are the rows of
    `vh`. For a few of them use `torch.svd_lowrank`.

    Fix safety

    No fix: order and signs differ, and so do the shapes for N < d.

    Not reported

    - Other matrices.

    Known limitations

    If `X` has more rows than columns, as for a covariance of many samples, the product is the smaller matrix. The
    source does not show which is the case, so this rule is off by default.

    Measured

    60 times faster for N = 80 and d = 2304, with the same top values (CPU).

    References

    - `torch.linalg.svd`: https://docs.pytorch.org/docs/stable/generated/torch.linalg.svd.html
    - `torch.linalg.eigh`: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigh.html
    - `torch.svd_lowrank`: https://docs.pytorch.org/docs/stable/generated/torch.svd_lowrank.html
    """

    code, name = "TPL507", "low-rank-eigh"
    tier = Tier.EXTRA
    impact = Impact.MEDIUM
    confidence = Confidence.MEDIUM
    listens = (Calls("eigh", "eigvalsh", "eig", "symeig"),)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        matrix = argument(node, 0, "A") or argument(node, 0, "a") or argument(node, 0, "input")
        if matrix is None or not ctx.is_call_of(node, *_TARGETS):
            return
        factor = factor_of_gram(matrix, ctx)
        if factor is None:
            return
        name = ctx.text(factor)
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` decomposes a product of `{name}` with itself; an SVD of `{name}` is far cheaper "
            "with few rows.",
            advice=(
                f"Use `torch.linalg.svd({name}, full_matrices=False)`: the eigenvalues are the squares of `s`, "
                "largest first."
            ),
        )
