"""Output formats: findings in, text out, one module each. Prints nothing itself."""
