import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

# program: a plain data set
# expect: fixed
# simulate: pinning
class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((4,), float(index)), index % 2


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4))


if __name__ == "__main__":
    main()
# program: dicts of tensors
# expect: fixed
# simulate: pinning
class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return {"inputs": torch.full((4,), float(index)), "targets": index % 2, "name": str(index)}


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["inputs"].cuda()), batch["targets"].cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4), batch["name"], type(batch).__name__)


if __name__ == "__main__":
    main()
# program: a batch that answers any attribute
# simulate: pinning
class Record(dict):
    __getattr__ = dict.get


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return Record({"inputs": torch.full((4,), float(index)), "targets": torch.tensor(index % 2)})


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["inputs"].cuda()), batch["targets"].cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4), sorted(batch))


if __name__ == "__main__":
    main()
# program: a batch that answers by a method
# simulate: pinning
class Record(dict):
    def __getattr__(self, name):
        return self.get(name)


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return Record({"inputs": torch.full((4,), float(index)), "targets": torch.tensor(index % 2)})


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["inputs"].cuda()), batch["targets"].cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4), sorted(batch))


if __name__ == "__main__":
    main()
# program: a batch that answers by itself
# simulate: pinning
class Record(dict):
    def __getattribute__(self, name):
        if name in ("pin_memory", "is_pinned"):
            return None
        return super().__getattribute__(name)


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return Record({"inputs": torch.full((4,), float(index)), "targets": torch.tensor(index % 2)})


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["inputs"].cuda()), batch["targets"].cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4), sorted(batch))


if __name__ == "__main__":
    main()
# program: a batch whose base answers any attribute
# simulate: pinning
class Open(dict):
    __getattr__ = dict.get


class Record(Open):
    pass


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return Record({"inputs": torch.full((4,), float(index)), "targets": torch.tensor(index % 2)})


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["inputs"].cuda()), batch["targets"].cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4), sorted(batch))


if __name__ == "__main__":
    main()
# program: a batch with a pin_memory of its own
# simulate: pinning
class Record(dict):
    def pin_memory(self):
        return {"gone": True}


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return Record({"inputs": torch.full((4,), float(index)), "targets": torch.tensor(index % 2)})


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["inputs"].cuda()), batch["targets"].cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4), sorted(batch))


if __name__ == "__main__":
    main()
# program: a batch with an attribute called pin_memory
# simulate: pinning
class Record(dict):
    pin_memory = False


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return Record({"inputs": torch.full((4,), float(index)), "targets": torch.tensor(index % 2)})


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["inputs"].cuda()), batch["targets"].cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4), sorted(batch))


if __name__ == "__main__":
    main()
# program: a batch that counts what is set
# simulate: pinning
class Record(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setitem__("sets", self.get("sets", 0) + 1)


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return Record({"inputs": torch.full((4,), float(index)), "targets": torch.tensor(index % 2)})


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["inputs"].cuda()), batch["targets"].cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4), sorted(batch))


if __name__ == "__main__":
    main()
# program: a batch that refuses to be set
# simulate: pinning
class Record(dict):
    def __setitem__(self, key, value):
        raise TypeError("frozen")


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return Record({"inputs": torch.full((4,), float(index)), "targets": torch.tensor(index % 2)})


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["inputs"].cuda()), batch["targets"].cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4), sorted(batch))


if __name__ == "__main__":
    main()
# program: a list that answers any attribute
# simulate: pinning
class Pair(list):
    def __getattr__(self, name):
        return 0


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return Pair([torch.full((4,), float(index)), torch.tensor(index % 2)])


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        inputs, targets = batch[0].to_dense() if batch[0].is_sparse else batch[0], batch[1]
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4))


if __name__ == "__main__":
    main()
# program: a tensor of its own class
# simulate: pinning
class Marked(torch.Tensor):
    def pin_memory(self, *given):
        return self * 0


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return (torch.full((4,), float(index)).as_subclass(Marked), torch.tensor(index % 2))


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        inputs, targets = batch[0].to_dense() if batch[0].is_sparse else batch[0], batch[1]
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4))


if __name__ == "__main__":
    main()
# program: text that looks like a method
# simulate: pinning
class Text(str):
    pin_memory = None


class Rows(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return (torch.full((4,), float(index)), torch.tensor(index % 2), Text("a"))


def main():
    model = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    for batch in loader:
        inputs, targets = batch[0].to_dense() if batch[0].is_sparse else batch[0], batch[1]
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        loss.backward()
        optimizer.step()
        print(round(loss.item(), 4))


if __name__ == "__main__":
    main()
