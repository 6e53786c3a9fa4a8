"""The fix of the collection changes the result: it is what ends the graphs that refer to themselves."""

import gc


class Graph:
    ended = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        Graph.ended += 1


def train(model, loader, optimizer):
    for batch in loader:
        graph = Graph()
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del graph
        gc.collect()
    return Graph.ended
