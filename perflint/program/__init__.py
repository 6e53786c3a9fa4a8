"""All summaries, linked: names across files, the call graph, heat and its routes."""
