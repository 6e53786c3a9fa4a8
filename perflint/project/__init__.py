"""The project that is checked: its files, settings, requirements, changes in git and its baseline."""
