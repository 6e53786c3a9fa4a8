"""Text, spans, syntax trees, scopes and suppression comments of one file. Knows neither PyTorch nor rules."""
