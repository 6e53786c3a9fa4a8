import re

import torch
from torch.utils.data import DataLoader, Dataset

# program: in a data set
# expect: fixed
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: with flags
# expect: fixed
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return len(re.compile(r"a.b", re.DOTALL | re.I).findall(f"A{index}b\na\nb"))

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: over several lines
# expect: fixed
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(
            r"[a-z]+"
            r"\d",
            flags=re.MULTILINE,
        )
        return len(words.findall(f"ab{index}"))

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: a late star import has the name
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

from late import *

try:
    for batch in DataLoader(Texts(), batch_size=2):
        print(batch)
except Exception as error:
    print(type(error).__name__)
# file: late.py
_PATTERN = None
PATTERN = None
__all__ = ["_PATTERN", "PATTERN"]

# program: an early star import has the name
from late import *

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)
print(globals().get("_PATTERN"))
# file: late.py
_PATTERN = "mine"
__all__ = ["_PATTERN"]

# program: re is bound anew
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

def use_other():
    global re
    import fake as re

use_other()
for batch in DataLoader(Texts(), batch_size=2):
    print(batch)
# file: fake.py
def compile(pattern, flags=0):
    return Found()

class Found:
    def findall(self, text):
        return [1] * 100

# program: re is set from outside
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

import sys
import fake
setattr(sys.modules[__name__], "re", fake)
for batch in DataLoader(Texts(), batch_size=2):
    print(batch)
# file: fake.py
def compile(pattern, flags=0):
    return Found()

class Found:
    def findall(self, text):
        return [1] * 100

# program: the source runs elsewhere
import inspect
import types

def count(text):
    words = re.compile(r"\d+")
    return len(words.findall(text))

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return count(f"a{index}")

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)
space = {"re": re}
exec(inspect.getsource(count), space)
print(space["count"]("a1b2"))

# program: the code runs with other globals
import types

def count(text):
    words = re.compile(r"\d+")
    return len(words.findall(text))

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return other(f"a{index}")

other = types.FunctionType(count.__code__, {"re": re, "len": len})
for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: the names of the module are listed
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

print(sorted(name for name in globals() if not name.startswith("__")))
for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: the names of the module are counted from outside
from texts import Texts
import texts

print(sorted(name for name in vars(texts) if "PATTERN" in name))
for batch in DataLoader(Texts(), batch_size=2):
    print(batch)
# file: texts.py
import re
from torch.utils.data import Dataset

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

# program: the pattern is bound to fail
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        try:
            return len(re.compile(r"(").findall("a"))
        except re.error:
            return 7

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: the pattern warns
import warnings
warnings.simplefilter("error")

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        try:
            return len(re.compile("[[a]").findall("a"))
        except FutureWarning:
            return 7

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: flags by a name
FLAGS = re.IGNORECASE

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return len(re.compile(r"a", FLAGS).findall("Aa"))

FLAGS = 0
for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: flags that are shown
class Texts(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        re.purge()
        return len(re.compile(r"a", re.DEBUG).findall("Aa"))

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: bytes
# expect: fixed
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return len(re.compile(rb"\w").findall(b"Aa"))

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: a class attribute of that name
# expect: fixed
class Texts(Dataset):
    _PATTERN = 3

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return len(re.compile(r"\w").findall("Aa")) + self._PATTERN

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: a private name in a class
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        __pattern = re.compile(r"\w")
        return len(__pattern.findall("Aa"))

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: used before the module has run
from texts import Texts

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)
# file: texts.py
from torch.utils.data import DataLoader, Dataset

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        import re
        return len(re.compile(r"\w").findall("Aa"))

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

import re

# program: import of re may fail
from texts import Texts

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)
# file: texts.py
from torch.utils.data import DataLoader, Dataset

try:
    import regex_that_is_not_there as re
except ImportError:
    import re

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return len(re.compile(r"\w").findall("Aa"))

# program: re is patched by a test
from unittest import mock
import fake

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

with mock.patch.object(re, "compile", fake.compile):
    for batch in DataLoader(Texts(), batch_size=2):
        print(batch)
# file: fake.py
def compile(pattern, flags=0):
    return Found()

class Found:
    def findall(self, text):
        return [1] * 100

# program: the pattern is told apart by identity
seen = set()

class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        re.purge()
        words = re.compile(r"\d+")
        seen.add(id(words))
        kept.append(words)
        return 1

kept = []
for batch in DataLoader(Texts(), batch_size=2):
    print(batch)
print(len({id(word) for word in kept}))

# program: the module is deleted
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

saved = re
del re
try:
    for batch in DataLoader(Texts(), batch_size=2):
        print(batch)
except NameError as error:
    print("NameError")

# program: the name is deleted by a loop over globals
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

for name in [name for name in globals() if name.startswith("_P")]:
    del globals()[name]
for batch in DataLoader(Texts(), batch_size=2):
    print(batch)

# program: lines are counted
class Texts(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        words = re.compile(r"\d+")
        return len(words.findall(f"a{index}b{index}"))

for batch in DataLoader(Texts(), batch_size=2):
    print(batch)
