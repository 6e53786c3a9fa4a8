import numpy as np
import torch


def show(tensor):
    print(tensor.dtype, tuple(tensor.shape), tensor.tolist())


rows = np.arange(300) % 7
columns = np.arange(300) % 5

# program: indices of edges
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

show(edges(rows, columns))

# program: grids of literal sizes
# expect: fixed
def grid():
    return torch.tensor([np.zeros((20, 20), dtype=np.float32), np.ones((20, 20), dtype=np.float32)])

for step in range(2):
    show(grid())

# program: ranges
# expect: fixed
def ranges(n: int):
    return torch.tensor([np.arange(n, dtype=np.int64), np.arange(n, dtype=np.int64)])

for step in range(2):
    show(ranges(300))

# program: columns made here
# expect: fixed
def flat(a, b):
    first = np.asarray(a)
    second = np.array(b)
    return torch.tensor([first.reshape(-1).astype(np.float32), second.flatten().astype(np.float32)])

show(flat(range(300), np.ma.masked_equal(rows, 3)))

# program: the same type is asked for
# expect: fixed
def ranges(n: int):
    return torch.tensor([np.arange(n, dtype=np.int64), np.arange(n, dtype=np.int64)], dtype=torch.int64)

for step in range(2):
    show(ranges(300))

# program: floats asked for as bytes
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.float64), columns.ravel().astype(np.float64)], dtype=torch.uint8)

try:
    show(edges(rows * -1.5, columns * 300.7))
except Exception as error:
    print(type(error).__name__)

# program: NaN asked for as whole numbers
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.float64), columns.ravel().astype(np.float64)], dtype=torch.long)

rows = rows * 1.0
rows[3] = np.nan
try:
    show(edges(rows, columns))
except Exception as error:
    print(type(error).__name__)

# program: infinity asked for as whole numbers
def edges(rows, columns):
    return torch.LongTensor([rows.ravel().astype(np.float32), columns.ravel().astype(np.float32)])

rows = rows * 1.0
rows[3] = np.inf
try:
    show(edges(rows, columns))
except Exception as error:
    print(type(error).__name__)

# program: numbers too large for the type
def edges(rows, columns):
    return torch.IntTensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

try:
    show(edges(rows * 10 ** 12, columns))
except Exception as error:
    print(type(error).__name__)

# program: numbers too large for half precision
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.float64), columns.ravel().astype(np.float64)], dtype=torch.float16)

try:
    show(edges(rows * 1e5, columns))
except Exception as error:
    print(type(error).__name__)

# program: doubles asked for as floats
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.float64), columns.ravel().astype(np.float64)], dtype=torch.float32)

try:
    show(edges(rows * 1e300, columns / 3))
except Exception as error:
    print(type(error).__name__)

# program: doubles in a class of floats
def edges(rows, columns):
    return torch.FloatTensor([rows.ravel().astype(np.float64), columns.ravel().astype(np.float64)])

try:
    show(edges(rows * 1e300, columns / 3))
except Exception as error:
    print(type(error).__name__)

# program: whole numbers asked for as truths
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)], dtype=torch.bool)

show(edges(rows, columns))

# program: whole numbers asked for as complex
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)], dtype=torch.complex64)

try:
    show(edges(rows, columns))
except Exception as error:
    print(type(error).__name__)

# program: complex numbers asked for as floats
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.complex64), columns.ravel().astype(np.complex64)], dtype=torch.float32)

try:
    show(edges(rows, columns))
except Exception as error:
    print(type(error).__name__)

# program: masked arrays
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.float32), columns.ravel().astype(np.float32)])

try:
    show(edges(np.ma.masked_equal(rows, 3), np.ma.masked_equal(columns, 2)))
except Exception as error:
    print(type(error).__name__)

# program: masked arrays of whole numbers
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

try:
    show(edges(np.ma.masked_equal(rows, 3), np.ma.masked_equal(columns, 2)))
except Exception as error:
    print(type(error).__name__)

# program: matrices that stay matrices
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

try:
    show(edges(np.matrix(rows), np.matrix(columns)))
except Exception as error:
    print(type(error).__name__)

# program: series of a table
class Series:
    def __init__(self, values):
        self.values = values

    def ravel(self):
        return self

    def astype(self, kind):
        return Series(self.values.astype(kind))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i]

    def __array__(self, *args, **kwargs):
        return self.values[::-1]

def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

show(edges(Series(rows), Series(columns)))

# program: lengths that differ
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

try:
    show(edges(rows, columns[:-3]))
except Exception as error:
    print(type(error).__name__)

# program: nothing in them
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.float64), columns.ravel().astype(np.float64)])

show(edges(rows[:0], columns[:0]))

# program: nothing in them, with two dimensions
def edges(rows, columns):
    return torch.tensor([rows.astype(np.float64), columns.astype(np.float64)])

show(edges(np.zeros((0, 3)), np.zeros((0, 3))))

# program: a number without dimensions
def edges(rows, columns):
    return torch.tensor([rows.astype(np.int64), columns.astype(np.int64)])

show(edges(np.float32(3), np.float32(4)))

# program: unsigned words
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.uint32), columns.ravel().astype(np.uint32)])

try:
    show(edges(rows, columns))
except Exception as error:
    print(type(error).__name__)

# program: unsigned long words
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.uint64), columns.ravel().astype(np.uint64)])

try:
    show(edges(rows + 2 ** 63, columns))
except Exception as error:
    print(type(error).__name__)

# program: half precision
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.float16), columns.ravel().astype(np.float16)])

show(edges(rows, columns))

# program: texts
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.str_), columns.ravel().astype(np.str_)])

try:
    show(edges(rows, columns))
except Exception as error:
    print(type(error).__name__)

# program: dates
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype("datetime64[s]"), columns.ravel().astype("datetime64[s]")])

try:
    show(edges(rows, columns))
except Exception as error:
    print(type(error).__name__)

# program: the other byte order
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(">i4"), columns.ravel().astype(">i4")])

try:
    show(edges(rows, columns))
except Exception as error:
    print(type(error).__name__)

# program: fields
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype("i4,i4"), columns.ravel().astype("i4,i4")])

try:
    show(edges(rows, columns))
except Exception as error:
    print(type(error).__name__)

# program: the type of one is wider
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int32), columns.ravel().astype(np.int64)])

show(edges(rows, columns))

# program: types by a name that is bound twice
kind = np.float32

def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(kind), columns.ravel().astype(kind)])

kind = np.int64
show(edges(rows, columns))

# program: numpy's word for a type is rebound
np.int64 = np.float64

def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

show(edges(rows, columns))

# program: the default type is another
torch.set_default_dtype(torch.float64)

def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.float32), columns.ravel().astype(np.float32)])

show(edges(rows, columns))

# program: the default type decides for a class
torch.set_default_dtype(torch.float64)

def edges(rows, columns):
    return torch.Tensor([rows.ravel().astype(np.float32), columns.ravel().astype(np.float32)])

show(edges(rows, columns))

# program: a class of tensors is given numbers
def edges(rows, columns):
    return torch.Tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

show(edges(rows, columns))

# program: memory is shared afterwards
def edges(rows, columns):
    return torch.as_tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

made = edges(rows, columns)
rows += 1
made += 1
show(made)
print(rows.tolist())

# program: asarray of doubles
def edges(rows, columns):
    return torch.asarray([rows.ravel().astype(np.float64), columns.ravel().astype(np.float64)])

show(edges(rows, columns))

# program: gradients are asked for
def edges(rows, columns):
    return torch.tensor([rows.ravel().astype(np.float32), columns.ravel().astype(np.float32)], requires_grad=True)

made = edges(rows, columns)
made.sum().backward()
show(made.grad)

# program: order of evaluation
said = []

def told(kind):
    said.append(kind)
    return kind

def edges(rows, columns):
    return torch.tensor([told(rows).ravel().astype(np.int64), told(columns).ravel().astype(np.int64)], dtype=[said.append("t"), torch.int64][1])

show(edges(rows, columns))
print([str(word)[:3] for word in said])

# program: numpy by another name in the function
def edges(rows, columns, np=np):
    return torch.tensor([rows.ravel().astype(np.int64), columns.ravel().astype(np.int64)])

show(edges(rows, columns))

# program: numpy of a function
def edges(rows, columns):
    import numpy
    return torch.tensor([rows.ravel().astype(numpy.int64), columns.ravel().astype(numpy.int64)])

show(edges(rows, columns))

# program: full of a value
# expect: fixed
def grids(value):
    return torch.tensor([np.full((20, 20), value, dtype=np.float32), np.full((20, 20), value, dtype=np.float32)])

for value in (1, 2.5):
    show(grids(value))

# program: linspace
# expect: fixed
def lines(n: int):
    return torch.tensor([np.linspace(0, 1, n, dtype=np.float64), np.linspace(0, 2, n, dtype=np.float64)])

for step in range(2):
    show(lines(300))

# program: linspace of arrays
def lines(a, b):
    return torch.tensor([np.linspace(a, b, 300, dtype=np.float64), np.linspace(b, a, 300, dtype=np.float64)])

for step in range(2):
    show(lines(np.zeros((2, 0)), np.zeros((2, 0))).reshape(-1))

# program: an error where a size is negative
def ranges(n: int):
    return torch.tensor([np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.float32)])

for n in (400, 0):
    show(ranges(n))
