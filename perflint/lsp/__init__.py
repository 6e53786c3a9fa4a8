"""The language server: findings while you type, with the text in the editor. Knows the protocol; nothing knows it.

`analysis` is about texts and findings, `convert` about what the protocol calls them, `server` about when.
"""
