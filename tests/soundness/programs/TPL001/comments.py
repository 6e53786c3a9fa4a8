import torch

# program: behind a line
# expect: fixed
print(1)  # perflint: ignore[TPL101] nothing to see

# program: on a line of its own
# expect: fixed
# perflint: ignore[TPL101]
print(1)

# program: in a block that has nothing else
def f():
    if True:
        # perflint: ignore[TPL101]
        pass
    return 1

print(f())

# program: in a string
text = """
# perflint: ignore[TPL101]
"""
print(text)

# program: in a string behind a comment
text = """a  # perflint: ignore[TPL101]
b"""  # perflint: ignore[TPL101]
print(text)

# program: before another comment for another tool
# expect: fixed
value = [1,2]  # perflint: ignore[TPL101]  # noqa: E231
print(value)

# program: behind a backslash
# expect: fixed
value = 1 + \
    2  # perflint: ignore[TPL101]
print(value)

# program: a type comment stays
# expect: fixed
value = []  # type: list[int]  # perflint: ignore[TPL101]
print(value)

# program: in an f-string
value = 3
print(f"{value} # perflint: ignore[TPL101]")

# program: the source is read by the program
import pathlib
print(len(pathlib.Path(__file__).read_text().splitlines()) > 3)  # perflint: ignore[TPL101]

# program: between arguments
# expect: fixed
print(
    1,
    # perflint: ignore[TPL101]
    2,
)

# program: in brackets over lines
# expect: fixed
value = [
    1,  # perflint: ignore[TPL101]
    2,
]
print(value)

# program: form feed and no line end
print(1) # perflint: ignore[TPL101]
