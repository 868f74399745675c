"""The drawings of a load run: backlog and age beside theory, rates, and what the database did. Pure functions of the document.

Matplotlib draws; colours become the page's own variables and text stays text, so that a drawing follows the reader's theme.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import markupsafe

from harness.document import LoadDoc, SeriesDoc

WIDTH_INCHES, HEIGHT_INCHES, SMALL_HEIGHT_INCHES = 10.4, 3.4, 2.2
# Placeholders that no other colour equals, and what the page has for them.
INK, RULE, SOFT = "#010203", "#040506", "#070809"
HUES = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05")
VARIABLES = {INK: "var(--ink)", RULE: "var(--rule)", SOFT: "var(--soft)"} | {
    hue: f"var(--hue-{n})" for n, hue in enumerate(HUES, 1)
}
NAMED_FROM = 0.06  # of the run: a shorter phase has no room for its name
SIDE_BY_SIDE = (
    ("cores", "CPU, cores"),
    ("ms", "Commit flush and “select 1”, ms"),
    ("sessions", "Sessions"),
    ("rows", "Dead rows"),
    ("%", "Share of time, %"),
    ("B/s", "Write-ahead log, B/s"),
)


@dataclass(frozen=True)
class Plot:
    """One drawing. ``told`` says in words what it shows."""

    title: str
    told: str
    svg: markupsafe.Markup


def plots(load: LoadDoc) -> tuple[Plot, ...]:
    """All drawings that the document has the numbers for."""
    found = [_backlog(load), _age(load), _rates(load)]
    found += [_side(load, unit, title) for unit, title in SIDE_BY_SIDE]
    return tuple(plot for plot in found if plot is not None)


def _backlog(load: LoadDoc) -> Plot | None:
    lines = _named(load, "backlog")
    if not lines:
        return None
    band = next((one for one in load.estimates if one.name == "fluid, as planned" and one.low is not None), None)
    recovery = next((phase.began for phase in load.phases if phase.name == "recovery"), None)

    def more(axes: Any) -> None:
        if band is not None and recovery is not None and band.low is not None and band.high is not None:
            axes.axvspan(
                recovery + band.low,
                recovery + band.high,
                color=HUES[1],
                alpha=0.16,
                linewidth=0,
                label="95 % of drains, as planned",
            )

    told = "Jobs that are due and not started. The dashed line is the fluid model as planned; the shaded stretch is where 95 % of such drains end."
    return _plot(load, "Backlog", told, "jobs", lines, more=more)


def _age(load: LoadDoc) -> Plot | None:
    lines = _named(load, "oldest age")
    told = "How long the oldest job has been due and not started, by its first due time; dashed: by theory."
    return _plot(load, "Oldest age", told, "s", lines) if lines else None


def _rates(load: LoadDoc) -> Plot | None:
    lines = [*_named(load, "arrivals"), *_named(load, "completions")]
    told = (
        "Arrivals do not wait for the system. A throughput that is back says nothing about the age of the oldest job."
    )
    return _plot(load, "Arrivals and completions", told, "jobs/s", lines) if lines else None


def _side(load: LoadDoc, unit: str, title: str) -> Plot | None:
    lines = [series for series in load.series if series.unit == unit]
    if not lines:
        return None
    told = ", ".join(series.name for series in lines) if len(lines) > 1 or title.startswith("Share") else ""
    return _plot(load, title, told, unit, lines, small=True)


def _named(load: LoadDoc, name: str) -> list[SeriesDoc]:
    return [series for series in load.series if series.name == name]


def _plot(
    load: LoadDoc,
    title: str,
    told: str,
    unit: str,
    lines: Sequence[SeriesDoc],
    *,
    more: Any = None,
    small: bool = False,
) -> Plot:
    # Only a page with a load in it pays for the import.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "svg.fonttype": "none", "svg.hashsalt": title, "font.size": 9.5, "text.color": INK, "axes.labelcolor": SOFT,
        "xtick.color": SOFT, "ytick.color": SOFT, "axes.edgecolor": RULE, "axes.grid": True, "grid.color": RULE, "grid.linewidth": 0.7,
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "font.family": "sans-serif",
    }  # fmt: skip
    with mpl.rc_context(settings):
        figure = Figure(
            figsize=(WIDTH_INCHES / (2 if small else 1), SMALL_HEIGHT_INCHES if small else HEIGHT_INCHES),
            layout="constrained",
        )
        axes = figure.subplots()
        for n, series in enumerate(lines):
            values = [float("nan") if value is None else value for value in series.values]
            style = {"linestyle": (0, (4, 3)), "linewidth": 1.4} if series.expected else {"linewidth": 1.7}
            label = f"{series.name} by theory" if series.expected else series.name
            axes.plot(series.at, values, color=SOFT if series.expected else HUES[n % len(HUES)], label=label, **style)
        if more is not None:
            more(axes)
        _mark_phases(axes, load, small=small)
        named = len(axes.get_legend_handles_labels()[1]) > 1
        axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * (1.4 if small and named else 1.05))  # room for the names
        axes.set_xlim(left=0)
        axes.set_ylabel(unit)
        axes.set_xlabel("seconds of the run")
        if named:
            axes.legend(loc="upper left", ncols=2 if small else 1, fontsize=8.5)
        drawn = io.StringIO()
        figure.savefig(
            drawn,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    return Plot(title, told, _inline(drawn.getvalue(), title))


def _mark_phases(axes: Any, load: LoadDoc, *, small: bool) -> None:
    """The outage shaded, and the phases named that are long enough for their names."""
    whole = max((phase.ended for phase in load.phases), default=0.0)
    for phase in load.phases:
        if phase.name == "outage":
            axes.axvspan(phase.began, phase.ended, color=SOFT, alpha=0.13, linewidth=0)
        if not small and phase.ended - phase.began > NAMED_FROM * whole:
            axes.annotate(
                phase.name, ((phase.began + phase.ended) / 2, 1.0), xycoords=("data", "axes fraction"),
                ha="center", va="bottom", fontsize=8.5, color=SOFT,
            )  # fmt: skip


def _inline(svg: str, title: str) -> markupsafe.Markup:
    """Without the file's head, its ids made this drawing's own, its colours the page's."""
    body = svg[svg.index("<svg") :]
    own = "".join(character for character in title.lower() if character.isalnum())
    body = re.sub(r'\bid="([^"]+)"', rf'id="{own}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{own}-\1)", body)
    body = re.sub(r'xlink:href="#([^"]+)"', rf'xlink:href="#{own}-\1"', body)
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\s(?:width|height)="[0-9.]+pt"', "", body, count=2)
    for placeholder, variable in VARIABLES.items():
        body = body.replace(placeholder, variable)
    label = markupsafe.escape(title)
    return markupsafe.Markup(body.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))  # noqa: S704  drawn by us, from numbers
