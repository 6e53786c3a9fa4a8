"""The built-in rules, one module each. Installed as `perflint.rules`."""
