"""Which files hold tests: by where pytest looks for them, unless the file is a script that tests a network."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from perflint.syntax.roles import holds_tests

SCRIPT = """
    import torch
    from data import loader

    def test(net):
        for images, names in loader:
            save(net(images.cuda()), names)

    if __name__ == "__main__":
        test(build().eval())
    """
LOOP = """
    from data import loader
    from model import net

    for images, names in loader:
        save(net(images), names)
    """
CALLED = """
    from data import loader

    def perform_test(net):
        for images, names in loader:
            save(net(images.cuda()), names)

    def test(config):
        perform_test(build(config).eval())
    """
TESTS = """
    from layers import Block

    def test_shapes():
        assert Block(8)(8) == 8

    if __name__ == "__main__":
        test_shapes()
    """
WITH_PYTEST = """
    import pytest

    def test_shapes():
        assert True

    if __name__ == "__main__":
        pytest.main([__file__])
    """
CASES = """
    from testing import CommonTestCase

    class TestBlock(CommonTestCase):
        def test_shapes(self):
            self.assertTrue(True)

    if __name__ == "__main__":
        run_tests()
    """

EVALUATION = """
    from data import loader

    def decode(net, images):
        return net(images.cuda()).cpu()

    def testing(data, net):
        return [decode(net, images) for images in loader(data)]
    """


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("src/test_net.py", SCRIPT, False),
        ("net_test.py", SCRIPT, False),
        ("test_kitti.py", LOOP, False),
        ("tools/test_net.py", CALLED, False),
        ("tests/test_net.py", CALLED, True),
        ("test_block.py", CALLED + "\n    def test_shapes(): ...\n", True),
        ("test_block.py", TESTS, True),
        ("block_test.py", WITH_PYTEST, True),
        ("test_block.py", CASES, True),
        ("conftest.py", "", True),
        ("tests/run_all.py", SCRIPT, True),
        ("test/scenes.py", EVALUATION, False),
        ("tests/scenes.py", EVALUATION, True),
        ("test/scenes.py", EVALUATION + "\n    def test_scenes(): ...\n", True),
        ("test/scenes.py", WITH_PYTEST, True),
        ("train.py", TESTS, False),
        ("latest.py", SCRIPT, False),
    ],
)
def test_what_holds_tests(path: str, text: str, expected: bool) -> None:
    assert holds_tests(path, ast.parse(dedent(text))) is expected
