"""TPL119: one file that is opened, parsed or decoded again for every sample."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import Calls, Confidence, Context, Finding, Heat, Impact, Rule, keyword, last, sample_work
from perflint.api.loading import is_decoded_for_size, is_picked_from, reads_one_file

_READERS = sample_work.OPENERS | sample_work.PARSERS | sample_work.DECODERS


class FileReadAgain(Rule):
    """A dataset reads the same file again for every sample, or a picture is decoded for nothing but its size.

    What it does

    Reports calls that read a file in a dataset, a transform or a collate function, where the path is made of literals,
    settings and what the constructor bound, so that every sample reads the same file. Also reports calls on the hot
    path that decode a picture of which only the shape is used, as test scripts do that write a result in the size of
    the picture that their dataset has read.

    Why is this slow?

    Every sample pays for the whole file. `np.load(path)[index]` reads all rows to use one. Opening an HDF5 file, an
    archive or a database parses its index again and starts with an empty cache. Decoding a picture takes
    milliseconds; its size stands in the first bytes of the file.

    What to do

    Read the file once in `__init__`. Load a large array with `mmap_mode="r"`. Open a file that workers cannot share
    (HDF5, LMDB, zip) on the first access in each worker, and keep it: `if self.file is None: self.file = ...`.
    `PIL.Image.open(path).size` reads the header of a picture alone; a dataset that has decoded the picture can return
    its size.

    Fix safety

    No fix: a file that is opened in `__init__` may not be usable in workers.

    Not reported

    - Files whose path depends on the sample.
    - Reads behind `if self.data is None`, in cached functions, and with `mmap_mode`.
    - Small tables of constants that are read whole: a few tens of microseconds.

    Measured

    One row of an array of 20,000 rows of 64 numbers: 2.1 ms for `np.load(path)[index]`, 0.1 us from an array that is
    kept.

    References

    - numpy.load: https://numpy.org/doc/stable/reference/generated/numpy.load.html
    - `torch.utils.data.Dataset`: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.Dataset
    """

    code, name = "TPL119", "file-read-again"
    impact = Impact.MEDIUM
    listens = (Calls(*sorted({last(name) for name in _READERS})),)
    at_least = Heat.STEP

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        target = ctx.target(node.func)
        if is_decoded_for_size(node, ctx):
            yield self.finding(
                node,
                ctx,
                f"`{ctx.text(node)}` decodes the whole picture, and only its shape is used.",
                advice="Return the size with the sample that was decoded before, or read the header alone: "
                "`PIL.Image.open(path).size`.",
            )
            return
        if target not in _READERS or ctx.role(node) != "data" or keyword(node, "mmap_mode") is not None:
            return
        if not reads_one_file(node, ctx):
            return
        picked = target not in sample_work.DECODERS and is_picked_from(node, ctx)
        if target in sample_work.PARSERS - sample_work.SLOW_PARSERS and not picked:
            return  # a small table of constants, for all that is known
        does = "opens" if target in sample_work.OPENERS else "reads" if target in sample_work.PARSERS else "decodes"
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {does} the same file again for every sample"
            + (", to use a part of it." if picked else "."),
            advice=_advice(target),
            confidence=Confidence.HIGH if picked or target in sample_work.OPENERS else Confidence.MEDIUM,
        )


def _advice(target: str) -> str:
    if target in sample_work.OPENERS:
        return "Open it on the first access in each worker, and keep it: `if self.file is None: self.file = ...`."
    if target == "numpy.load":
        return 'Load it once in `__init__`; with `mmap_mode="r"` if it is large.'
    return "Read it once in `__init__`, and keep the result."
