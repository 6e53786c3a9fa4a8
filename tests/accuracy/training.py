"""Observes training programs of public repositories, with small options and made-up data, and scores `check` by them.

    python tests/accuracy/training.py REPOSITORIES OUT [--only NAME ...] [--table]

REPOSITORIES holds the program's repository as `owner+name` (a git directory, or one with `repo` in it). The interpreter
that runs this needs torch and what the programs import. Each program runs in a copy of its Python files, which is left
in OUT/tree; OUT/NAME.json is what was observed, OUT/NAME.log what it printed, OUT/scores.json the outcome.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import made_up_data as data
import score


@dataclass(frozen=True, slots=True)
class Program:
    """`script` is run in its own folder with `arguments`, once `prepare` has laid data into that folder."""

    name: str
    repository: str
    script: str
    arguments: tuple[str, ...] = ()
    prepare: Callable[[Path], None] = data.nothing
    steps: int = 3
    environment: dict[str, str] = field(default_factory=dict)


_GANS = (
    ("gan", 28),
    ("wgan", 28),
    ("wgan_gp", 28),
    ("wgan_div", 28),
    ("dcgan", 32),
    ("lsgan", 32),
    ("cgan", 32),
    ("acgan", 32),
    ("infogan", 32),
    ("softmax_gan", 28),
    ("sgan", 32),
    ("ebgan", 32),
    ("relativistic_gan", 32),
    ("aae", 32),
)
_SMALL_GPT = (
    "--device=cuda --compile=False --eval_iters=2 --n_layer=2 --n_head=2 --n_embd=64 --block_size=64 --batch_size=4 "
    "--max_iters=12 --log_interval=1 --dtype=bfloat16"
)

PROGRAMS: tuple[Program, ...] = (
    Program(
        "nanoGPT",
        "karpathy/nanoGPT",
        "train.py",
        ("config/train_shakespeare_char.py", *_SMALL_GPT.split()),
        data.shakespeare,
    ),
    Program(
        "minGPT-adder",
        "karpathy/minGPT",
        "projects/adder/adder.py",
        ("--model.model_type=gpt-nano", "--trainer.batch_size=8", "--trainer.num_workers=0"),
        environment={"PYTHONPATH": "../.."},
    ),
    Program(
        "minGPT-chargpt",
        "karpathy/minGPT",
        "projects/chargpt/chargpt.py",
        ("--model.model_type=gpt-nano", "--trainer.batch_size=4", "--trainer.num_workers=0", "--data.block_size=32"),
        data.text_file("input.txt"),
        environment={"PYTHONPATH": "../.."},
    ),
    Program(
        "makemore",
        "karpathy/makemore",
        "makemore.py",
        ("--device", "cuda", "--n-layer", "2", "--n-embd", "32", "--n-embd2", "32", "--num-workers", "1"),
        data.names_file("names.txt"),
    ),
    Program(
        "mnist", "pytorch/examples", "mnist/main.py", ("--batch-size", "8", "--epochs", "1"), data.mnist("../data")
    ),
    Program(
        "mnist-rnn",
        "pytorch/examples",
        "mnist_rnn/main.py",
        ("--accel", "--batch-size", "8", "--epochs", "1"),
        data.mnist("../data"),
    ),
    Program(
        "forward-forward",
        "pytorch/examples",
        "mnist_forward_forward/main.py",
        ("--epochs", "4", "--train_size", "64"),
        data.mnist("./data/"),
    ),
    Program(
        "siamese",
        "pytorch/examples",
        "siamese_network/main.py",
        ("--batch-size", "4", "--epochs", "1"),
        data.mnist("../data"),
    ),
    Program("vae", "pytorch/examples", "vae/main.py", ("--batch-size", "8", "--epochs", "1"), data.mnist("../data")),
    Program(
        "dcgan-example",
        "pytorch/examples",
        "dcgan/main.py",
        (
            "--accel",
            "--dataset",
            "fake",
            "--batchSize",
            "4",
            "--ngf",
            "8",
            "--ndf",
            "8",
            "--niter",
            "1",
            "--workers",
            "1",
        ),
    ),
    Program(
        "imagenet",
        "pytorch/examples",
        "imagenet/main.py",
        ("--dummy", "-b", "4", "-a", "resnet18", "--epochs", "1", "-j", "1"),
    ),
    Program(
        "word-language-model",
        "pytorch/examples",
        "word_language_model/main.py",
        ("--accel", "--epochs", "1", "--emsize", "32", "--nhid", "32", "--batch_size", "4", "--data", "data/words"),
        data.words("data/words"),
    ),
    *(
        Program(
            name,
            "eriklindernoren/PyTorch-GAN",
            f"implementations/{name}/{name}.py",
            ("--batch_size", "8", "--n_epochs", "1", "--img_size", str(size)),
            data.mnist("../../data/mnist"),
        )
        for name, size in _GANS
    ),
    Program(
        "ppo",
        "vwxyzjn/cleanrl",
        "cleanrl/ppo.py",
        ("--num-steps", "16", "--total-timesteps", "2000"),
        environment={"PYTHONPATH": ".."},
    ),
    Program(
        "dqn",
        "vwxyzjn/cleanrl",
        "cleanrl/dqn.py",
        ("--learning-starts", "20", "--total-timesteps", "400"),
        environment={"PYTHONPATH": ".."},
    ),
    Program(
        "c51",
        "vwxyzjn/cleanrl",
        "cleanrl/c51.py",
        ("--learning-starts", "20", "--total-timesteps", "400"),
        environment={"PYTHONPATH": ".."},
    ),
    Program("enwik8", "lucidrains/x-transformers", "train_enwik8.py", (), data.enwik8),
    Program("copy-task", "lucidrains/x-transformers", "train_copy.py"),
    Program("parity", "lucidrains/x-transformers", "train_parity.py"),
    Program(
        "unet",
        "milesial/Pytorch-UNet",
        "train.py",
        ("--batch-size", "2", "--scale", "1"),
        data.masks,
        environment={"WANDB_MODE": "disabled"},
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repositories", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--lines", action="store_true", help="print what was missed and refuted")
    parser.add_argument("--seconds", type=int, default=240, help="for one program")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    scores: list[score.Score] = []
    for program in PROGRAMS:
        if given.only and program.name not in given.only:
            continue
        made = observed(program, given.repositories, given.out.resolve(), given.seconds)
        if made is None:
            print(f"{program.name}: failed; its log says why")
            continue
        scores.append(made)
        found, missed, right, wrong = (sum(one.values()) for one in (made.found, made.missed, made.right, made.wrong))
        print(f"{program.name}: recall {found} of {found + missed}, precision {right} of {right + wrong}", flush=True)
        for line in (*made.lines_missed, *made.findings_wrong) if given.lines else ():
            print("   ", line)
    whole = score.together("programs", scores, len(PROGRAMS) - len(scores))
    (given.out / "scores.json").write_text(json.dumps(score.plain(whole), indent=1) + "\n")
    print(score.summary(whole))


def observed(program: Program, repositories: Path, out: Path, seconds: int) -> score.Score | None:
    """Run one program under observation, unless its observation is there, and hold `check` against it."""
    tree = out / "tree" / program.name
    folder = (tree / program.script).parent
    result = out / f"{program.name}.json"
    if not tree.exists():
        lay_out(repositories / program.repository.replace("/", "+"), tree)
    if not result.exists():
        program.prepare(folder)
        command = [sys.executable, "-m", "perflint", "observe", "--device", "simulated", "--steps", str(program.steps)]
        command += ["--timeout", str(seconds), "--output", str(result), "--", "python", Path(program.script).name]
        with (out / f"{program.name}.log").open("w") as log:
            subprocess.run(
                [*command, *program.arguments],
                cwd=folder,
                stdout=log,
                stderr=log,
                env=_environment(program),
                check=False,
                timeout=seconds * 2,
            )
    if not result.exists() or not json.loads(result.read_text())["steps"]:
        return None
    findings = checked(tree, folder)
    return score.score(program.name, "", score.seen_in([result], None), findings, 0)


def _environment(program: Program) -> dict[str, str]:
    root = str(Path(__file__).parent.parent.parent)
    mine = dict(program.environment)
    paths = [root, *filter(None, [mine.pop("PYTHONPATH", ""), os.environ.get("PYTHONPATH", "")])]
    return {**os.environ, **mine, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def lay_out(repository: Path, tree: Path) -> None:
    """Write the Python files and small texts of a repository's newest commit."""
    git = repository / "repo" if (repository / "repo").is_dir() else repository
    listed = subprocess.run(
        ["git", "-C", str(git), "ls-tree", "-r", "-z", "--name-only", "HEAD"], capture_output=True, check=True
    )
    for name in listed.stdout.decode().split("\0"):
        if name.endswith((".py", ".toml", ".cfg", ".txt")):
            shown = subprocess.run(["git", "-C", str(git), "show", f"HEAD:{name}"], capture_output=True, check=False)
            if shown.returncode == 0:
                file = tree / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(shown.stdout)


def checked(tree: Path, folder: Path) -> list[dict[str, Any]]:
    """What `check` finds in a tree, named from `folder`."""
    command = [sys.executable, "-m", "perflint", "check", str(tree), "--output-format", "json", "--exit-zero"]
    run = subprocess.run(
        [*command, "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=_environment(PROGRAMS[0]),
    )
    if not run.stdout:
        raise SystemExit(run.stderr)
    found: list[dict[str, Any]] = json.loads(run.stdout)["findings"]
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))
    main()
