"""The word that stands, among those of a project's configurations, for one that can be installed: others import of it
what it exports.
"""

INSTALLED = "package@"
#: Before what a configuration sets, in the words of configurations: `:17 model.depth=4`; what stands for what it is set
#: to where nobody can tell.
SET, UNTOLD = ":", "?"
#: Before a command that a project writes down.
RUN = ">"
