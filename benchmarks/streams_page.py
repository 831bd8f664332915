"""Write the page of benchmarks/streams.py, with its aims and figure, from the records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from defaults_page import aim, listed, points
from measuring import Page, circumstances, table_head, table_line
from stream_data import STATIONARY, STREAMS, THROUGHPUT
from stream_peers import (
    ADAPTIVE,
    AT_100,
    BLOCK,
    FIXED,
    GROWING,
    LAST_LABEL,
    LEARNERS,
    MAJORITY,
    MOA_ARF,
    RIVER_ARF,
    RIVER_ROWS,
    TIMED,
    WINDOW,
    WINDOWED,
)

from isokern import plotting

MOST_BELOW = 1.0  # points below the growing map or NoChange
LEAST_TIMES = {MOA_ARF: 20, f"{MOA_ARF}, Java loop": 20, RIVER_ARF: 100}
LEAST_RATE = 100_000
OURS = (FIXED, GROWING, ADAPTIVE)
DRAWN = (ADAPTIVE, GROWING, FIXED, WINDOWED, MOA_ARF, "CapyMOA KNN", LAST_LABEL)
DRAWN_STREAMS = [name for name in STREAMS if name not in {*STATIONARY, *THROUGHPUT}]
COLOURS = dict(zip(DRAWN, ("#0072B2", "#56B4E9", "#999999", "#E69F00", "#D55E00", "#009E73", "#000000"), strict=True))

INTRODUCTION = f"""\
Accuracy, throughput and memory of isokern and other stream learners: `python benchmarks/streams.py`.

Each row is predicted before it is learned. *Fixed* is `IKOGDClassifier(growth=False)`, whose map is drawn from the
first 1,000 rows, *growing* `IKOGDClassifier()`, *adaptive* `AdaptiveIKClassifier()`; `partial_fit_predict` gets blocks
of {BLOCK:,} rows, and predicts and learns them row by row. *NoChange* predicts the last label, *majority* the most
frequent so far. LightGBM is retrained on the last {WINDOW:,} rows after each {BLOCK:,}; its first {BLOCK:,} rows are
predicted by the majority so far. CapyMOA's learners are HoeffdingAdaptiveTree, AdaptiveRandomForestClassifier and
StreamingRandomPatches (ten trees each), KNN and StreamingGradientBoostedTrees, river's
HoeffdingAdaptiveTreeClassifier, ARFClassifier (ten trees) and AMFClassifier; all other settings are their defaults.
River sees the first {RIVER_ROWS:,} rows, with one seed. Seeds are the learners'; all get the same stream. isokern gets
categories as a frame, CapyMOA as nominal attributes, river as text (AMF: codes), LightGBM as categorical codes."""
LIMIT = """\
Each run has its own process and a limit of CPU time; a run that was stopped shows how many rows it learned. Values are
means over seeds, ± the standard deviation where there are several. Bold: the best of a stream.
Log-loss leaves out rows for which a learner gave no probabilities, such as LightGBM's first."""


# -- numbers


def latest(runs):
    """Return the last record of each stream, learner and seed."""
    return {(run["stream"], run["learner"], run["seed"]): run for run in runs}


class Table:
    """The records by stream and learner."""

    def __init__(self, runs):
        self.runs = {}
        for (stream, learner, _), run in latest(runs).items():
            self.runs.setdefault((stream, learner), []).append(run)
        measured = {stream for stream, _ in self.runs}
        self.streams = [name for name in STREAMS if name in measured and name not in THROUGHPUT]
        known = {learner for _, learner in self.runs}
        self.learners = [name for name in LEARNERS if name in known]

    def rows(self, stream):
        """Return how many rows the longest run has."""
        return max(run["rows"] for (name, _), runs in self.runs.items() if name == stream for run in runs)

    def values(self, stream, learner, key):
        return [run[key] for run in self.runs.get((stream, learner), []) if key in run]

    def is_whole(self, stream, learner):
        rows = self.values(stream, learner, "rows")
        return bool(rows) and min(rows) == self.rows(stream)

    def start(self, stream, learner, n_rows=RIVER_ROWS):
        """Return each seed's accuracy on the first rows; none if a run has fewer."""
        n_rows = min(n_rows, self.rows(stream))
        runs = self.runs.get((stream, learner), [])
        is_long = all(run["rows"] >= n_rows for run in runs)
        return [sum(run["right"][: -(-n_rows // BLOCK)]) / n_rows for run in runs] if is_long else []

    def whole(self, stream, learner):
        """Return each seed's accuracy; none if a run has not finished."""
        return self.values(stream, learner, "accuracy") if self.is_whole(stream, learner) else []


def mean(values):
    """Return the mean over seeds; None if nothing was measured."""
    return float(np.mean(values)) if values else None


def mean_ranks(accuracies):
    """Return the mean rank over streams of each learner with an accuracy on all of them; equal ones share a rank."""
    complete = [name for name in accuracies if None not in accuracies[name]]
    if not complete:
        return {}
    table = np.array([accuracies[name] for name in complete])
    above = (table[None] > table[:, None]).sum(axis=1)
    level = (table[None] == table[:, None]).sum(axis=1)
    return dict(zip(complete, np.mean(above + (level + 1) / 2, axis=1).tolist(), strict=True))


def accuracies_of(table, accuracy):
    return {name: [mean(accuracy(stream, name)) for stream in table.streams] for name in table.learners}


# -- tables


def stream_lines(table, runs):
    """Yield what the streams are."""
    sizes = {run["stream"]: (run["columns"], run["classes"]) for run in runs}
    yield table_head("stream", "rows", "columns", "classes", "")
    for name, source in STREAMS.items():
        if name in sizes:
            yield table_line(name, f"{table.rows(name):,}", *sizes[name], source.text)


def accuracy_lines(table, accuracy):
    """Yield accuracies in percent, and the mean ranks of learners that have one on all streams."""
    by_learner = accuracies_of(table, accuracy)
    learners = [name for name in table.learners if any(value is not None for value in by_learner[name])]
    yield table_head("stream", *learners)
    for k, stream in enumerate(table.streams):
        best = max((values[k] for values in by_learner.values() if values[k] is not None), default=None)
        yield table_line(stream, *(accuracy_cell(accuracy(stream, name), best) for name in learners))
    ranks = mean_ranks(by_learner)
    yield table_line("mean rank", *(f"{ranks[name]:.2f}" if name in ranks else "–" for name in learners))


def accuracy_cell(values, best):
    if not values:
        return "–"
    spread = f" ± {100 * np.std(values):.2f}" if len(values) > 1 else ""
    text = f"{100 * mean(values):.2f}{spread}"
    return f"**{text}**" if mean(values) == best else text


def whole_lines(table):
    """Yield the accuracies on whole streams; then how far stopped runs came."""
    yield from accuracy_lines(table, table.whole)
    stopped = [
        f"{learner} on {stream} ({100 * mean(table.values(stream, learner, 'accuracy')):.2f} on "
        f"{min(table.values(stream, learner, 'rows')):,} rows)"
        for stream, learner in table.runs
        if stream in table.streams and LEARNERS[learner].n_rows is None and not table.is_whole(stream, learner)
    ]
    yield f"\nOn fewer rows, because of a limit of time or rows: {listed(stopped)}."


def key_lines(table, key, digits):
    """Yield a measure by stream and learner."""
    learners = [name for name in table.learners if any(table.values(stream, name, key) for stream in table.streams)]
    yield table_head("stream", *learners)
    for stream in table.streams:
        yield table_line(stream, *(number(mean(table.values(stream, name, key)), digits) for name in learners))


def number(value, digits):
    return "–" if value is None else f"{value:,.{digits}f}"


def rate(table, stream, learner, key="seconds"):
    """Return the rows per second of the runs on the CPU that most runs of the stream had; None if there are none."""
    machines = Counter(run["machine"] for (name, _), runs in table.runs.items() if name == stream for run in runs)
    usual = machines.most_common(1)[0][0]
    runs = [run for run in table.runs.get((stream, learner), []) if run["machine"] == usual]
    seconds = sum(run[key] for run in runs)
    return sum(run["rows"] for run in runs) / seconds if seconds else None


def rate_lines(table):
    yield table_head("stream", *table.learners)
    for stream in table.streams:
        yield table_line(stream, *(number(rate(table, stream, name, "cpu"), 0) for name in table.learners))


# -- aims


def aim_lines(table):
    """Yield whether the aims are met."""
    if ADAPTIVE not in table.learners:
        yield f"{ADAPTIVE} is not measured yet."
        return
    for text, accuracy in (("whole streams", table.whole), (f"the first {RIVER_ROWS:,} rows", table.start)):
        yield rank_aim(text, mean_ranks(accuracies_of(table, accuracy)))
    stationary = [name for name in table.streams if name in STATIONARY]
    yield below_aim(table, GROWING, stationary, "on stationary streams")
    yield below_aim(table, LAST_LABEL, table.streams, "on all streams")


def rank_aim(text, ranks):
    """Say who is first by mean rank."""
    order = sorted(ranks, key=ranks.get)
    found = listed(f"{name} {ranks[name]:.2f}" for name in order[:3])
    return aim(f"first by mean rank on {text} among {len(ranks)} learners", found, order[:1] == [ADAPTIVE])


def below_aim(table, other, streams, where):
    """Compare the adaptive learner with another one that it must not be far below."""
    both = {name: (mean(table.whole(name, ADAPTIVE)), mean(table.whole(name, other))) for name in streams}
    below = {name: 100 * (theirs - ours) for name, (ours, theirs) in both.items() if None not in {ours, theirs}}
    worst = max(below, key=below.get, default=None)
    found = f"at worst {below[worst]:.2f} below on {worst}" if worst else "not measured yet"
    is_met = bool(below) and below[worst] <= MOST_BELOW
    return aim(f"at most {MOST_BELOW:g} point below {other} {where}", found, is_met)


def peer_lines(table):
    """Yield the best peer of each stream and its lead over the adaptive learner, or the growing map before that."""
    ours = ADAPTIVE if ADAPTIVE in table.learners else GROWING
    peers = [name for name in table.learners if name not in {*OURS, LAST_LABEL, MAJORITY}]
    yield table_head("stream", "rows", ours, "best peer", "its accuracy", "its lead, points")
    for stream in table.streams:
        for n_rows in sorted({min(RIVER_ROWS, table.rows(stream)), table.rows(stream)}):
            found = {name: mean(table.start(stream, name, n_rows)) for name in (ours, *peers)}
            own, found = (
                found[ours],
                {name: value for name, value in found.items() if value is not None and name != ours},
            )
            if own is not None and found:
                best = max(found, key=found.get)
                values = f"{100 * own:.2f}", best, f"{100 * found[best]:.2f}", points(found[best] - own)
                yield table_line(stream, f"{n_rows:,}", *values)
    yield "\n" + REASONS


REASONS = """\
On *LED* and *Agrawal*, most columns tell nothing about the class. Forests take the best column for each split; ladder
trees draw columns at random, more often those that told the most in recent rows, and lasting trees keep the splits of
the past. On *RBF, drifting*, classes are round clusters in ten columns: the distance to recent rows tells more about
them than axis-parallel cells do."""


# -- throughput


def throughput_lines(table):
    """Yield rows per second and the latency of one-row calls, and the aims."""
    yield table_head("stream", "learner", "rows", "rows / s", "rows / CPU s", "p50, µs", "p99, µs", "max, µs", "load")
    for stream in THROUGHPUT:
        for learner in (*LEARNERS, *TIMED):
            if runs := table.runs.get((stream, learner)):
                latencies = np.mean(
                    [run["microseconds"] for run in runs if "microseconds" in run] or [[np.nan] * 3], axis=0
                )
                texts = ("–" if np.isnan(value) else f"{value:,.0f}" for value in latencies)
                rates = (number(rate(table, stream, learner, key), 0) for key in ("seconds", "cpu"))
                load = f"{max(run['load'] for run in runs):.1f}"
                yield table_line(stream, learner, f"{runs[0]['rows']:,}", *rates, *texts, load)
    yield ""
    if (THROUGHPUT[0], AT_100) not in table.runs:
        yield f"{AT_100} is not measured yet."
        return
    ours = rate(table, THROUGHPUT[0], AT_100)
    yield aim(f"at least {LEAST_RATE:,} rows a second", f"{ours:,.0f}", ours >= LEAST_RATE)
    for peer, least in LEAST_TIMES.items():
        if theirs := rate(table, THROUGHPUT[0], peer):
            yield aim(f"at least {least} times {peer}", f"{ours / theirs:.1f}", ours >= least * theirs)


# -- figure


def draw(table, path):
    """Draw the accuracy of blocks along the streams that drift, with the first seed."""
    streams = [name for name in table.streams if name in DRAWN_STREAMS]
    figure, panels = plotting.new_figure(len(streams), n_lines=-(-len(streams) // 3))
    for panel, stream in zip(panels, streams, strict=True):
        for learner in reversed(DRAWN):  # isokern's on top
            if runs := table.runs.get((stream, learner)):
                rows, accuracies = along(runs[0])
                look = {"color": COLOURS[learner], "linewidth": 1.8 if learner in OURS else 1.0}
                panel.plot(rows, accuracies, label=learner, **look)
        panel.set(title=stream, xlabel="rows seen", ylabel="accuracy (%)")
        panel.xaxis.set_major_formatter("{x:,.0f}")
        plotting.plain(panel)
    plotting.shared_legend(figure, panels)
    figure.savefig(path, dpi=80)


def along(run, most=50):
    """Return rows seen and accuracies in percent of the blocks, several together where there are many."""
    together = max(1, -(-len(run["right"]) // most))
    right = [sum(run["right"][k : k + together]) for k in range(0, len(run["right"]), together)]
    ends = np.minimum(BLOCK * together * np.arange(1, len(right) + 1), run["rows"])
    return ends, 100 * np.array(right) / np.diff(ends, prepend=0)


# -- the page


def page_of(runs, stem=None):
    """Return the page of all records; with a stem, draw the figure too."""
    page, table = Page(), Table(runs)
    page.lines = ["# Streams that change", "", INTRODUCTION, "", *origin(runs), ""]
    if not runs:
        return page
    page.lines += [*stream_lines(table, runs), "", LIMIT]
    sections = {
        "Aims": aim_lines(table),
        "Accuracy, %": whole_lines(table),
        f"Accuracy on the first {RIVER_ROWS:,} rows, %": accuracy_lines(table, table.start),
        "The best peer of each stream": peer_lines(table),
        "Throughput": throughput_lines(table),
        "Kappa": key_lines(table, "kappa", 4),
        "Log-loss": key_lines(table, "log_loss", 3),
        "Rows per second of CPU time": rate_lines(table),
        "Peak memory beyond that of libraries and data, MB": key_lines(table, "megabytes", 0),
    }
    for title, lines in sections.items():
        page.lines += [f"\n## {title}\n", *lines]
        if stem and title == "Aims" and set(table.streams) & set(DRAWN_STREAMS):
            draw(table, f"{stem}.png")
            page.lines.append(f"\n![Accuracy of blocks along the streams]({Path(stem).name}.png)")
    return page


def origin(runs):
    """Yield where the records come from."""
    if runs:
        yield circumstances(runs[-1])
        for key, text in (
            ("commit", "Commits"),
            ("machine", "CPUs"),
            ("package", "Learners"),
            ("limit", "Limits of CPU time in seconds"),
        ):
            yield f"{text}: {listed(dict.fromkeys(str(run[key]) for run in runs))}."
        seeds = [run["seed"] + 1 for run in runs if run["learner"] == ADAPTIVE]
        yield f"Seeds of {ADAPTIVE}: {max(seeds, default=0)}."
        loads = [run["load"] for run in runs]
        yield f"Load of the machine when runs began: {min(loads):.1f} to {max(loads):.1f}."
