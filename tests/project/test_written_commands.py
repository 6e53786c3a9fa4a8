"""The commands that the texts of a project hold."""

from __future__ import annotations

from perflint.project.commands import Command, commands


def _of(text: str) -> list[Command]:
    return commands(text)[0]


def test_options_are_told_with_what_follows_them() -> None:
    (command,) = _of("CUDA_VISIBLE_DEVICES=0 python3 -u tools/train.py --fast --lr 1e-3 -b=8 --gpus 0 1 --set-a 'x y'")
    assert command.program == "tools/train.py"
    assert command.options == {"fast": True, "lr": ["1e-3"], "b": ["8"], "gpus": ["0", "1"], "set_a": ["x y"]}


def test_a_command_goes_on_after_a_backslash_and_ends_where_the_shell_ends_it() -> None:
    found = _of("python a.py --one \\\n  --two 2 && python b.py --three | tee --four\npython c.py > out --five # --six")
    assert [(item.program, item.options) for item in found] == [
        ("a.py", {"one": True, "two": ["2"]}),
        ("b.py", {"three": True}),
        ("c.py", {}),
    ]


def test_code_in_a_sentence_ends_with_it() -> None:
    (command,) = _of("Run `python train.py --fast` before --slow is tried.")
    assert command.options == {"fast": True}


def test_what_launches_a_program_keeps_its_own_options() -> None:
    for text in (
        "torchrun --nproc_per_node=8 train.py --fast",
        "python -m torch.distributed.launch --nproc_per_node 8 train.py --fast",
        "accelerate launch --mixed_precision fp16 ./train.py --fast",
        "$PYTHON $ROOT/train.py --fast",
    ):
        assert _of(text) == [Command("train.py", {"fast": True}, {})]


def test_a_module_is_its_file() -> None:
    assert _of("python -m tools.train --fast")[0].program == "tools/train.py"


def test_what_a_variable_or_a_placeholder_stands_for_is_not_told() -> None:
    (command,) = _of("python train.py --a $A --b <number> --c {x,y} [--d] --e")
    assert command.options == {"a": [None], "b": [None], "c": [None], "d": True, "e": True}


def test_settings_have_no_dashes() -> None:
    assert _of("python train.py env=walker +seed=1 --fast")[0].settings == {"env": "walker", "seed": "1"}


def test_what_stands_in_no_command_is_left() -> None:
    found, rest = commands('ARGS="--warm"\npython train.py $ARGS --fast\n')
    assert [item.options for item in found] == [{"fast": True}]
    assert "--warm" in rest
    assert "--fast" not in rest
