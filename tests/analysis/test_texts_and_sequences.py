"""Texts of steps and turns, prefixes and grown sequences, lengths; settings, precision and constants of a file."""

from __future__ import annotations

import ast

import pytest
from of_text import call_at, facts_of, node_at

from perflint.analysis.aliases.fresh_values import just_made, may_change
from perflint.analysis.aliases.read_only import stays_here
from perflint.analysis.effects.debug_switches import debug_setting, debug_switch
from perflint.analysis.feasibility.passed_keywords import file_passes
from perflint.analysis.feasibility.unconditional import is_in_every_run
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.frequency.collectives import is_collective, loop_over_values, row_of_collectives
from perflint.analysis.loading.evidence import loader_confidence
from perflint.analysis.loading.rebuilt import stays_the_same
from perflint.analysis.phases.grown_sequences import forward_on_grown
from perflint.analysis.phases.step_texts import makes_text
from perflint.analysis.transfers.destinations import goes_to_accelerator, type_of
from perflint.analysis.transfers.widenings import widens
from perflint.analysis.values.autocasts import autocast_in_wide_range
from perflint.analysis.values.derived_names import calls_on, derived_names, mentions_values
from perflint.analysis.values.prefixes import forward_of_prefix, prefixes_in, reads_next
from perflint.analysis.values.text_lengths import is_cut_to_length, is_short_length
from perflint.analysis.values.turn_texts import is_one_text, text_of_turn
from perflint.analysis.waits.timed_regions import timed_region, unfinished_work
from perflint.finding import Confidence

_HEAD = "import os\nimport time\nimport torch\nfrom torch import nn\n\n"


def _loop(facts: FileFacts) -> ast.For:
    return next(part for part in ast.walk(facts.tree.module) if isinstance(part, ast.For))


def test_a_loop_runs_a_model_on_prefixes() -> None:
    text = (
        "def go(net: nn.Linear, x):\n    for t in range(1, 512):\n        out = net(x[:, :t])\n        y = out[:, -1]\n"
    )
    facts = facts_of(_HEAD + text)
    [prefix] = prefixes_in(_loop(facts), "t", facts)
    assert facts.text(prefix) == "x[:, :t]"
    assert forward_of_prefix(prefix, _loop(facts), facts) is call_at(facts, "net(x[:, :t])")
    assert reads_next(prefix, _loop(facts))


def test_a_loop_adds_the_picked_token_to_the_sequence() -> None:
    text = "def go(model, ids):\n    for _ in range(100):\n        logits = model(ids).logits\n"
    text += "        token = logits[:, -1].argmax(-1, keepdim=True)\n        ids = torch.cat([ids, token], dim=1)\n"
    facts = facts_of(_HEAD + text)
    join = call_at(facts, "torch.cat([ids, token], dim=1)")
    found = forward_on_grown(join, facts)
    assert found is None or facts.text(found) == "model(ids)"


def test_one_text_of_a_turn_is_tokenized() -> None:
    text = "def go(model, tokenizer, rows):\n    for row in rows:\n"
    text += "        inputs = tokenizer(row, return_tensors='pt').to('cuda')\n        model.generate(**inputs)\n"
    facts = facts_of(_HEAD + text)
    made = text_of_turn(call_at(facts, "model.generate(**inputs)"), _loop(facts), facts)
    assert made is call_at(facts, "tokenizer(row, return_tensors='pt')")
    assert is_one_text(made.args[0], _loop(facts))


def test_texts_are_cut_to_one_length_or_short() -> None:
    facts = facts_of(f"{_HEAD}a(genome[start:end])\na(text[1:-1])\nb(8)\nb(4096)\n")
    assert is_cut_to_length(call_at(facts, "a(genome[start:end])"), facts)
    assert not is_cut_to_length(call_at(facts, "a(text[1:-1])"), facts)
    assert [is_short_length(call_at(facts, text).args[0], facts) for text in ("b(8)", "b(4096)")] == [True, False]


def test_a_step_that_generates_makes_text() -> None:
    facts = facts_of(f"{_HEAD}def step(model, x):\n    y = model.generate(x)\n    return tokenize(y)\n")
    assert makes_text(call_at(facts, "tokenize(y)"), facts)


@pytest.mark.parametrize(
    ("statement", "on"),
    [
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "1"', True),
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "0"', False),
        ('os.environ["HOME"] = "1"', False),
    ],
)
def test_a_setting_switches_debugging_on(statement: str, *, on: bool) -> None:
    facts = facts_of(f"{_HEAD}{statement}\n")
    [assign] = [part for part in ast.walk(facts.tree.module) if isinstance(part, ast.Assign)]
    assert (debug_setting(assign, facts) is not None) is on


def test_a_switch_is_thrown_in_every_run() -> None:
    text = "torch.autograd.set_detect_anomaly(True)\nif os.environ.get('CHECK'):\n"
    facts = facts_of(f"{_HEAD}{text}    torch.autograd.set_detect_anomaly(mode=True)\n")
    always = call_at(facts, "torch.autograd.set_detect_anomaly(True)")
    asked = call_at(facts, "torch.autograd.set_detect_anomaly(mode=True)")
    assert debug_switch(always, facts) is not None
    assert [is_in_every_run(call, facts) for call in (always, asked)] == [True, False]


def test_keywords_that_a_file_passes() -> None:
    facts = facts_of("run(output_attentions=True)\nrun(output_states=False)\n")
    assert file_passes(facts, ["output_attentions"])
    assert not file_passes(facts, ["output_states", "other"])


@pytest.mark.parametrize(("dtype", "wide"), [("torch.bfloat16", ""), ("torch.float16", None)])
def test_a_file_runs_in_sixteen_bits_of_wide_range(dtype: str, wide: str | None) -> None:
    facts = facts_of(f"{_HEAD}with torch.autocast('cuda', dtype={dtype}):\n    pass\n")
    assert autocast_in_wide_range(facts) == wide


def test_names_are_derived_from_those_of_a_loop() -> None:
    facts = facts_of("for p in net.parameters():\n    g = p.grad\n    g.norm()\n    g.numel()\n    other.norm()\n")
    loop = _loop(facts)
    names = derived_names(loop.target, list(loop.body))
    assert names == {"p", "g"}
    assert [facts.text(call) for part in loop.body for call in calls_on(part, names)] == ["g.norm()", "g.numel()"]
    assert not mentions_values(ast.parse("g.shape[0]", mode="eval").body, names)


def test_destinations_of_moves() -> None:
    text = "def go(x, y, device):\n    x.to('cuda')\n    x.to('cpu')\n    x.type_as(y)\n    x.type(y.type())\n"
    facts = facts_of(f"{_HEAD}{text}    torch.zeros(3).to('cuda')\n")
    assert goes_to_accelerator(call_at(facts, "torch.zeros(3).to('cuda')"), facts)
    assert not goes_to_accelerator(call_at(facts, "x.to('cpu')"), facts)
    for text in ("x.type_as(y)", "x.type(y.type())"):
        like = type_of(call_at(facts, text))
        assert isinstance(like, ast.Name)
        assert like.id == "y"


def test_a_cast_of_bytes_makes_them_larger() -> None:
    text = "def go():\n    images = torch.zeros(3, dtype=torch.uint8)\n    rows = load()\n"
    facts = facts_of(f"{_HEAD}{text}    here(images.float(), rows.float())\n")
    bytes_, rows = call_at(facts, "images.float()"), call_at(facts, "rows.float()")
    assert isinstance(bytes_.func, ast.Attribute)
    assert isinstance(rows.func, ast.Attribute)
    assert widens("float", bytes_.func.value, bytes_, facts) is Confidence.HIGH
    assert widens("float", rows.func.value, rows, facts) is None


def test_a_clone_of_what_was_just_made() -> None:
    text = "def go(x):\n    y = (x + 1).clone()\n    z = x.clone()\n    z.add_(1)\n    return y\n"
    facts = facts_of(_HEAD + text)
    fresh, changed = call_at(facts, "(x + 1).clone()"), call_at(facts, "x.clone()")
    assert isinstance(fresh.func, ast.Attribute)
    assert isinstance(changed.func, ast.Attribute)
    assert just_made(fresh.func.value, facts) is not None
    assert just_made(changed.func.value, facts) is None
    assert may_change(changed, facts)


def test_a_table_is_only_read_in_its_function() -> None:
    facts = facts_of("def go(x):\n    table = [1, 2]\n    other = [3, 4]\n    keep(other)\n    return table[x]\n")
    assert stays_here(node_at(facts, "[1, 2]", ast.List), facts)
    assert not stays_here(node_at(facts, "[3, 4]", ast.List), facts)


def test_collectives_in_a_row_and_over_values() -> None:
    text = "import torch.distributed as dist\n\ndef go(a, b, rows):\n    dist.all_reduce(a)\n    dist.all_reduce(b)\n"
    facts = facts_of(f"{text}    for row in rows:\n        dist.all_reduce(row)\n")
    first, inner = call_at(facts, "dist.all_reduce(a)"), call_at(facts, "dist.all_reduce(row)")
    assert is_collective(first, facts)
    assert len(row_of_collectives(first, facts)) == 2
    assert loop_over_values(inner, facts) is _loop(facts)
    assert loop_over_values(first, facts) is None


def test_loaders_are_known_and_rebuilt_from_the_same() -> None:
    text = "from torch.utils.data import DataLoader\n\ndef go(data):\n    for i in range(9):\n"
    text += "        loader = DataLoader(data, batch_size=4)\n"
    facts = facts_of(f"{text}        other = DataLoader(data[i])\n        here(loader)\n")
    assert loader_confidence(call_at(facts, "here(loader)").args[0], facts) is Confidence.HIGH
    same, other = call_at(facts, "DataLoader(data, batch_size=4)"), call_at(facts, "DataLoader(data[i])")
    assert not stays_the_same(other, _loop(facts), facts)
    facts = facts_of(text)
    assert stays_the_same(call_at(facts, facts.text(same)), _loop(facts), facts)


@pytest.mark.parametrize(
    ("wait", "unfinished"), [("pass", True), ("torch.cuda.synchronize()", False), ("print(y)", False)]
)
def test_a_clock_does_not_wait_for_the_device(wait: str, *, unfinished: bool) -> None:
    text = "def go():\n    net = nn.Linear(4, 4).cuda()\n    x = torch.rand(4, 4, device='cuda')\n"
    facts = facts_of(
        f"{_HEAD}{text}    start = time.time()\n    y = net(x)\n    {wait}\n    return time.time() - start\n"
    )
    end = node_at(facts, "time.time() - start", ast.BinOp)
    region = timed_region(end, facts)
    assert region is not None
    work = unfinished_work(region, end, facts)
    assert (work is call_at(facts, "net(x)")) is unfinished
