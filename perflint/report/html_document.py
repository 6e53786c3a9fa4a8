"""The head of a page in HTML that needs nothing from elsewhere, and runs nothing that it does not hold itself."""

from __future__ import annotations

import base64
import hashlib
import html

from perflint.report.visible import visible


def document_start(title: str, *, style: str, script: str, more: str = "") -> str:
    """All before what the page shows. `more` are further lines of its head."""
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"{more}<title>{title}</title>\n<style>{style}</style></head><body>"
    )


def escaped(text: str) -> str:
    """A text as it is shown in a page."""
    return html.escape(visible(text))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
