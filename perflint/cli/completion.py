"""`perflint completion SHELL`: the script that teaches a shell to complete."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

from perflint.cli import console
from perflint.cli.app import CLEAN

_HOW = {
    "bash": "echo 'eval \"$(perflint completion bash)\"' >>~/.bashrc",
    "zsh": "echo 'eval \"$(perflint completion zsh)\"' >>~/.zshrc",
    "fish": "perflint completion fish >~/.config/fish/completions/perflint.fish",
}


@click.command(
    "completion", epilog="\b\nTo enable it in every shell:\n" + "\n".join(f"  {line}" for line in _HOW.values())
)
@click.argument("shell", type=click.Choice(tuple(_HOW)))
def command(shell: str) -> int:
    """Print the completion script for SHELL."""
    from perflint.cli.app import group

    made = get_completion_class(shell)
    assert made is not None
    console.write(made(group, {}, "perflint", "_PERFLINT_COMPLETE").source().strip() + "\n")
    return CLEAN


def rules_like(incomplete: str) -> list[CompletionItem]:
    """Codes and names of rules that go on from what is typed; after a comma, from what stands behind it."""
    from perflint.errors import PerflintError
    from perflint.rule_api.registry import load_rules

    before, comma, word = incomplete.rpartition(",")
    try:
        rules = load_rules()
    except PerflintError:
        return []
    return [
        CompletionItem(f"{before}{comma}{identity}", help=rule.name)
        for rule in rules
        # With nothing typed yet, codes are enough.
        for identity in ((rule.code, rule.name) if word else (rule.code,))
        if identity.lower().startswith(word.lower())
    ]
