"""What an observed run says about a report, where `--observed` or the configuration names one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perflint.cli.project import Chosen
    from perflint.finding import Report
    from perflint.observe.trace import Observation
    from perflint.project.discovery import Discovery
    from perflint.project.settings import Settings


class Joining:
    """A function from a report to one with evidence; the same report where no observation was named."""

    def __init__(
        self,
        observation: Observation | None,
        settings: Settings,
        chosen: Chosen,
        discovery: Discovery,
        texts: Mapping[str, str],
    ) -> None:
        self._observation = observation
        self._settings = settings
        self._chosen = chosen
        self._discovery = discovery
        self._texts = texts

    @classmethod
    def of(
        cls,
        file: Path | None,
        settings: Settings,
        chosen: Chosen,
        discovery: Discovery,
        stdin: tuple[str, bytes] | None,
    ) -> Joining:
        """Reads the observation of `file`, or of the one that the configuration names. Raises PerflintError."""
        named = file or settings.observed
        observation, texts = None, {}
        if named is not None:
            from perflint.observe.reading import read

            observation = read(named)
            if stdin is not None:
                texts[stdin[0]] = stdin[1].decode("utf-8", "replace")
        return cls(observation, settings, chosen, discovery, texts)

    def __call__(self, report: Report) -> Report:
        if self._observation is None:
            return report
        from perflint.cli.project import options_for
        from perflint.observe.join import join, text_on_disk, wanted_in

        def text_of(path: str) -> str | None:
            return self._texts[path] if path in self._texts else text_on_disk(path)

        wanted = wanted_in(self._discovery, options_for(self._settings, self._chosen))
        return join(report, self._observation, self._chosen.running, text_of, wanted).report

    def then(self, narrow: Callable[[Report], Report]) -> Callable[[Report], Report]:
        """Evidence first, so that what is left out counts what only the observation found."""
        return lambda report: narrow(self(report))

    def picture(self) -> str:
        """Markup of one observed step, for pages."""
        if self._observation is None:
            return ""
        from perflint.observe.picture import picture

        return picture(self._observation)


def codes(observation: Observation) -> dict[int, str]:
    """The rule that found each line of an observation, by index into its `lines`, in the project around its files.

    Empty where the project cannot be checked: that is no reason to lose what was observed.
    """
    from perflint.cli import project
    from perflint.engine import check
    from perflint.errors import PerflintError
    from perflint.observe.join import join, text_on_disk, wanted_in

    files = sorted({site.path for site in observation.sites if Path(site.path).is_file()})
    if not files:
        return {}
    try:
        settings = project.settings_for(files, None, None)
        discovery, _ = project.find(files, None, settings)
        chosen = project.choose(discovery, settings, (), (), extra=False)
        options = project.options_for(settings, chosen)
        report = check(discovery, options)
    except PerflintError:
        return {}
    wanted = wanted_in(discovery, options)
    return dict(join(report, observation, chosen.running, text_on_disk, wanted).codes)
