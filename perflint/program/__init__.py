"""All summaries of a project, linked: names across files, the call graph, heat and its routes. No syntax trees."""
