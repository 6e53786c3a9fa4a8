"""Program analysis over all summaries: names, call graph, frequency, values, effects and feasibility. No rules."""
