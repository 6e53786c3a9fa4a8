"""The word that stands, among those of a project's configurations, for one that can be installed: others import of it
what it exports.
"""

INSTALLED = "package@"
