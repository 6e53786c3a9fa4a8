"""TPL120: library calls that make a sample many times slower than an equivalent."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, last, sample_work
from perflint.api.loading import decodes_beside, earlier_calls, has_rows, reads_one_file

_FRAMES = frozenset({"pandas.read_csv", "pandas.read_table"})
_SLOW = sample_work.IN_FLOAT64 | sample_work.FIGURES | sample_work.TEXT_PARSERS | sample_work.SHUFFLES | _FRAMES


class SlowSampleWork(Rule):
    """A dataset makes its samples with a library call that is many times slower than an equivalent.

    What it does

    Reports, in datasets, transforms and collate functions: resizing, warping and colour conversion by scikit-image;
    figures of matplotlib; numbers that are parsed from a text file for each sample; arrays of two dimensions that are
    shuffled in place.

    Why is this slow?

    scikit-image converts the picture to float64 and interpolates in float64. A matplotlib figure builds axes, ticks and
    fonts before it draws. Parsing text takes much longer than reading the same numbers from a binary file.
    `np.random.shuffle` swaps the rows of an array one after the other. The loader needs as many more workers, or the
    device waits.

    What to do

    Resize and warp the uint8 picture with OpenCV or torchvision. Draw shapes with `PIL.ImageDraw` or `cv2.fillPoly`.
    Convert text files once, to `.npy` or Parquet. Index by a permutation to shuffle rows.

    Fix safety

    No fix: interpolation and anti-aliasing differ between libraries, so the values change.

    Not reported

    - Code that no dataset, transform or collate function runs, such as evaluations and scripts.
    - Text files beside a picture or a sound that the same function decodes, which takes longer.
    - Text files whose contents are kept after the first epoch.

    Known limitations

    The size of a text file is not known. For a file of a few numbers, text and binary take the same time.

    Measured

    A point cloud of 2,500 x 6 numbers: 5.5 ms from text, 0.07 ms from `.npy`. With scikit-image 0.26 on one core, a
    picture of 375 x 500 pixels is resized to 256 x 256 in 51 ms, by Pillow in 4.5 ms, by OpenCV in 0.1 ms; a warp takes
    9.1 ms, by OpenCV 0.4 ms. A figure with one line: 107 ms (matplotlib 3.11). 20,000 rows of 4 numbers are shuffled in
    11 ms, by an index in 0.8 ms (NumPy 2.4).

    References

    - scikit-image, image data types: https://scikit-image.org/docs/stable/user_guide/data_types.html
    - numpy.load: https://numpy.org/doc/stable/reference/generated/numpy.load.html
    """

    code, name = "TPL120", "slow-sample-work"
    impact = Impact.MEDIUM
    listens = (Calls(*sorted({last(name) for name in _SLOW})),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        target = ctx.target(node.func)
        if target not in _SLOW or ctx.role(node) != "data" or earlier_calls(node, ctx):
            return
        parses = target in _FRAMES or target in sample_work.TEXT_PARSERS
        if target in sample_work.SHUFFLES and not (node.args and has_rows(node.args[0], ctx)):
            return
        if parses and (decodes_beside(node, ctx) or reads_one_file(node, ctx)):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node.func)}(...)` {_cost(target)}, for every sample.",
            advice=_advice(target),
            confidence=Confidence.MEDIUM if parses else Confidence.HIGH,
        )


def _cost(target: str) -> str:
    if target in sample_work.FIGURES:
        return "builds a matplotlib figure, which takes some 100 ms"
    if target in sample_work.IN_FLOAT64:
        return "computes in float64, many times slower than OpenCV or Pillow"
    if target in sample_work.SHUFFLES:
        return "swaps the rows of an array one by one, many times slower than an index"
    return "parses numbers from text, many times slower than reading a binary file"


def _advice(target: str) -> str:
    if target in sample_work.FIGURES:
        return "Draw into an array with `PIL.ImageDraw` or `cv2.fillPoly`."
    if target in sample_work.SHUFFLES:
        return "Index by a permutation: `rows = rows[np.random.permutation(len(rows))]`."
    if target in _FRAMES:
        return "Convert the files once to Parquet or `.npy`."
    if target in sample_work.TEXT_PARSERS:
        return "Convert the files once to `.npy`, and read them with `np.load`."
    if target.startswith("skimage.color"):
        return "Convert with `cv2.cvtColor`, which keeps the dtype of the picture."
    return "Use `cv2` or `torchvision.transforms.functional` on the uint8 picture."
