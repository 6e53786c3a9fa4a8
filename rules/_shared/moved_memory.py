"""What a copy to the device moves: a loader's batch, what was made of it on the host, or a grid of its size."""

from __future__ import annotations

from perflint.api import Context, Provenance, Tag, is_from
from perflint.api.invariants import Source, origin_of
from perflint.api.transfers import Copy, cast_before, made_anew


def is_new(copy: Copy, ctx: Context) -> bool:
    """Whether what is moved was made on the host just before: a cast of a batch, or what is no batch."""
    if cast_before(copy.moved, ctx) is not None:
        return True
    return not is_from_loader(copy) and made_anew(copy.moved, ctx) is not None


def is_of_loader(copy: Copy) -> bool:
    """Whether a batch is moved, whose bytes count whatever waits besides."""
    return is_from_loader(copy) or (
        copy.value.tag is Tag.BATCH and not is_from(copy.value.origin, Provenance.TOKENIZER)
    )


def is_from_loader(copy: Copy) -> bool:
    return is_from(copy.value.origin, Provenance.LOADER, Provenance.NAMED_LOADER)


def is_grid(copy: Copy, ctx: Context) -> bool:
    """Whether what is made is as large as a picture: of two sizes or more that come from a tensor, or of its shape."""
    for made in copy.origin.made:
        sizes = {ctx.text(item) for item in made.args if origin_of(item, ctx).source is Source.SIZES}
        if len(sizes) > 1 or any(text.endswith((".shape", ".size()")) for text in sizes):
            return True
    return False
