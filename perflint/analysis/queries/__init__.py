"""The questions that a file's findings depend on, recorded so that an unchanged file is not inspected again."""
