"""Write the page of benchmarks/defaults.py, with its aims and figures, from the measured numbers."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import contenders
import datasets
import numpy as np
from contenders import AT_100, BEFORE, BOOSTERS, CONTENDERS, DEFAULT, LINEAR, METRICS
from measuring import Page, circumstances, table_head, table_line

from isokern import IKOGDClassifier, plotting

STREAM, BLOCK, N_TURNS = "covertype, as a stream", 1000, 3
ENOUGH_ROWS = 3000  # of a data set, for the aims
AHEAD = 0.3  # points by which a learner is ahead, not level
MEAN_LOSS, WORST_LOSS = 0.2, 0.7
LEAST = {"news20 rebuilt": 0.968, "rcv1 subset": 0.970, "a9a": 0.848, "ijcnn1": 0.982, "covertype": 0.957}
AS_HIGH_AS, AS_HIGH = 400, ("letter", "mnist, ten classes")  # as the former default with so many partitionings
MOST_TIMES = {"fit": 2.0, "predict": 1.05}
WORSE = 0.002  # by which a metric of probabilities is worse, not level
LOOKS = {
    DEFAULT: ("#0072B2", "o", "full"),
    BEFORE: ("#0072B2", "o", "none"),
    LINEAR: ("#666666", "s", "full"),
    "LightGBM": ("#D55E00", "D", "none"),
    "LightGBM, 500 × 255": ("#D55E00", "D", "full"),
    "HistGradientBoosting": ("#E69F00", "^", "full"),
    "RandomForest": ("#009E73", "v", "full"),
    "ExtraTrees": ("#009E73", "v", "none"),
    "SVC": ("#CC79A7", "<", "full"),
    "Nystroem + SGD": ("#882255", ">", "full"),
}
PEER_NAMES = [name for name in CONTENDERS if name not in {DEFAULT, BEFORE}]

INTRODUCTION = """\
Accuracy and cost of `IKOGDClassifier()`, all defaults: `python benchmarks/defaults.py`.

*Default* is `IKOGDClassifier()`, *before* the former default,
`IKOGDClassifier(n_partitionings=100, schedule="adagrad")`. Data sets without an official split are split 80 : 20,
stratified, always in the same way. gas_sensor is shuffled, without `concentration`; kddcup99 is a random sample of
{most:,} rows, without classes of fewer than {fewest}. covertype with a number of rows has so many random training rows
and all test rows."""
HINDSIGHT = """\
The best of at most {n} settings is chosen on a random half of the test rows. Accuracies are those on the other half,
means of {seeds} seeds; of one seed if that took more than {slow} s of CPU time. Loss is the best setting's accuracy
less the default's, in points, with its standard error: that of the mean over rows of the paired difference, which is
first averaged over seeds."""
PEERS = """\
Each learner has a process of its own, limited to {limit} s. Values are means of {seeds} seeds; one seed if the first
run takes more than {slow} s. The calibration error is that of `isokern.evaluation`: the second class's, or the mean
over more than two classes.
{rules}"""
PARTITIONINGS = """\
Accuracy and seconds of `fit` by number of partitionings t, means of {seeds} seeds; one seed if the first fit takes more
than {slow} s. Gain is in points per doubling of the seconds, from the line above."""
COST = """\
Seconds of `fit` and `predict`, medians of {turns} turns; in each turn all learners run one after the other. The stream
is covertype's training rows by `partial_fit` in blocks of {block:,}. Memory is that of the fitted model's arrays, file
is what `isokern.save` writes."""


def points(difference):
    """Return a difference of accuracies in points, as text."""
    return f"{100 * difference:.2f}"


def aim(text, found, is_met):
    """Return a line that says whether an aim is met."""
    return f"- {text}: {found}{'' if is_met else ' **missed**'}"


def listed(names):
    return "; ".join(names) or "none"


# -- hindsight


def hindsight_lines(rows, plan):
    """Yield the table and the aims."""
    yield HINDSIGHT.format(n=max(len(row["grid"]) for row in rows), seeds=plan["seeds"], slow=plan["slow_grid"]) + "\n"
    columns = ("default", "before", "best", "its setting", "loss", "standard error")
    yield table_head("data", "rows", "tested on", "seeds", *columns)
    for row in rows:
        accuracies = (f"{row[key]:.4f}" for key in ("default", "before", "best"))
        setting = ", ".join(
            f"{value}" if key == "schedule" else f"{key} {value}" for key, value in row["setting"].items()
        )
        n_train, n_test = row["rows"]
        sizes = f"{n_train:,}", f"{n_test - n_test // 2:,}", f"{row['seeds']}"
        yield table_line(row["data"], *sizes, *accuracies, setting, points(row["loss"]), points(row["error"]))
    large = [row for row in rows if sum(row["rows"]) >= ENOUGH_ROWS]
    if large:
        mean, worst = np.mean([row["loss"] for row in large]), max(large, key=lambda row: row["loss"])
        missed = [row["data"] for row in large if row["loss"] > max(WORST_LOSS / 100, 2 * row["error"])]
        former = np.mean([row["best"] - row["before"] for row in large])
        yield f"\nThe mean loss on all data sets is {points(np.mean([row['loss'] for row in rows]))} points."
        yield f"On the {len(large)} with at least {ENOUGH_ROWS:,} rows:\n"
        found = f"{points(mean)} ({points(former)} before)"
        yield aim(f"mean loss at most {MEAN_LOSS} points", found, 100 * mean <= MEAN_LOSS)
        found = f"{points(worst['loss'])} on {worst['data']}; more than that on: {listed(missed)}"
        yield aim(f"worst at most {WORST_LOSS} points or two standard errors", found, not missed)


# -- peers


def peer_lines(rows, plan):
    """Yield the table, and what follows from it."""
    yield PEERS.format(**plan, rules=contenders.RULES) + "\n"
    yield table_head("data", "learner", "accuracy", "log-loss", "calibration error", "fit, s", "predict, s")
    for row in rows:
        for learner, found in row["learners"].items():
            yield table_line(row["data"], learner, *peer_values(found))
    finished = [row for row in rows if all("accuracy" in row["learners"][name] for name in (DEFAULT, BEFORE))]
    if finished:
        yield ""
        yield from peer_findings(finished)


def peer_findings(rows):
    """Yield who is ahead where, and the aims."""
    boosters, others, linear = (leads(rows, peers) for peers in (BOOSTERS, PEER_NAMES, [LINEAR]))
    yield f"The best booster is more than {AHEAD} points ahead of the default on: {named(boosters, 1)}."
    yield f"The default is more than {AHEAD} points ahead of all boosters on: {named(boosters, -1)}."
    yield f"No booster was run, or finished, on: {listed(name for name, lead in boosters.items() if lead is None)}."
    yield f"The best of all peers is more than {AHEAD} points ahead on: {named(others, 1)}.\n"
    text = f"never more than {AHEAD} points below LinearSVC; further below on"
    yield aim(text, named(linear, 1), not is_ahead(linear, 1))
    accuracies = {row["data"]: row["learners"][DEFAULT]["accuracy"] for row in rows}
    for data, least in LEAST.items():
        if data in accuracies:
            yield aim(f"{data} at least {least:.3f}", f"{accuracies[data]:.4f}", accuracies[data] >= least)
    for metric in METRICS:
        yield metric_aim(metric, rows)


def peer_values(found):
    """Return the columns of a learner's line; unfinished runs show why."""
    if "failed" in found:
        return found["failed"], "–", "–", "–", "–"
    metrics = (f"{found[key]:.4f}" if key in found else "–" for key in METRICS)
    return f"{found['accuracy']:.4f}", *metrics, f"{found['fit']:.2f}", f"{found['predict']:.2f}"


def leads(rows, peers):
    """Return for each data set by how much the best of the peers is ahead of the default; None if none finished."""
    return {row["data"]: lead(row["learners"], peers) for row in rows}


def lead(learners, peers):
    accuracies = [learners[name]["accuracy"] for name in peers if "accuracy" in learners.get(name, {})]
    return max(accuracies) - learners[DEFAULT]["accuracy"] if accuracies else None


def is_ahead(leads, sign):
    """Return the data sets with a lead of more than AHEAD points: the peers' for sign 1, the default's for -1."""
    return [name for name, found in leads.items() if found is not None and 100 * sign * found > AHEAD]


def named(leads, sign):
    return listed(f"{name} ({abs(100 * leads[name]):.1f})" for name in is_ahead(leads, sign))


def metric_aim(metric, rows):
    """Compare a metric of the default with that of the former one."""
    both = {row["data"]: [row["learners"][name][metric] for name in (DEFAULT, BEFORE)] for row in rows}
    worse = [f"{data} ({now:.4f}, was {was:.4f})" for data, (now, was) in both.items() if now > was + WORSE]
    now, was = np.mean(list(both.values()), axis=0)
    found = f"mean {now:.4f}, was {was:.4f}; worse by more than {WORSE} on: {listed(worse)}"
    return aim(f"{metric.replace('_', ' ')} no worse than before", found, now <= was and not worse)


def draw_peers(rows, path):
    """Draw accuracy against seconds of fit, a panel for each data set."""
    runs = [{learner: [found] for learner, found in row["learners"].items() if "accuracy" in found} for row in rows]
    figure, _ = accuracy_by_seconds([row["data"] for row in rows], runs)
    figure.savefig(path, dpi=80)


def accuracy_by_seconds(names, runs):
    """Return a figure and its panels, one for each data set: accuracy against seconds of fit, a line for each run."""
    from matplotlib.ticker import LogLocator

    figure, panels = plotting.new_figure(len(names), n_lines=-(-len(names) // 3))
    for panel, name, by_learner in zip(panels, names, runs, strict=True):
        for learner, found in by_learner.items():
            (colour, marker, fill), values = LOOKS[learner], [(here["fit"], here["accuracy"]) for here in found]
            look = {"color": colour, "marker": marker, "fillstyle": fill, "markersize": 8}
            panel.plot(*zip(*values, strict=True), label=learner, **look)
        panel.set(title=name, xlabel="seconds of fit", ylabel="accuracy", xscale="log")
        span = np.ptp(np.log10(panel.get_xlim()))
        panel.xaxis.set_major_locator(LogLocator(subs=(1,) if span > 2.5 else (1, 2, 5)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter("")
        panel.margins(0.12)
        plotting.plain(panel)
    plotting.shared_legend(figure, panels)
    return figure, panels


# -- partitionings


def gains(found):
    """Return the points gained per doubling of the seconds, from each number of partitionings to the next."""
    return [100 * (b["accuracy"] - a["accuracy"]) / math.log2(b["fit"] / a["fit"]) for a, b in pairwise(found)]


def partitioning_lines(rows, plan):
    """Yield the table and the aims."""
    yield PARTITIONINGS.format(**plan) + "\n"
    yield table_head("data", "t", "default", "fit, s", "gain", "before", "fit, s", "gain")
    for row in rows:
        columns = []
        for found in row["learners"].values():
            by_t = zip(found, ["", *(f"{gain:.2f}" for gain in gains(found))], strict=True)
            columns.append([(f"{here['accuracy']:.4f}", f"{here['fit']:.2f}", gain) for here, gain in by_t])
        for here, default, before in zip(row["learners"][DEFAULT], *columns, strict=True):
            yield table_line(row["data"], here["t"], *default, *before)
    yield ""
    yield from (as_high_aim(row) for row in rows if row["data"] in AS_HIGH and plan["t"][-1] == AS_HIGH_AS)


def as_high_aim(row):
    """Compare the untouched default with the former one of many partitionings."""
    usual = IKOGDClassifier().n_partitionings
    by_t = {name: {here["t"]: here["accuracy"] for here in found} for name, found in row["learners"].items()}
    now, was = by_t[DEFAULT][usual], by_t[BEFORE][AS_HIGH_AS]
    text = f"{row['data']} at t = {usual} as high as before at t = {AS_HIGH_AS}"
    return aim(text, f"{now:.4f}, was {was:.4f}", round(now, 4) >= round(was, 4))


def draw_partitionings(rows, path):
    """Draw accuracy against seconds of fit along t, a panel for each data set."""
    figure, panels = accuracy_by_seconds([row["data"] for row in rows], [row["learners"] for row in rows])
    for panel, row in zip(panels, rows, strict=True):
        for here in row["learners"][DEFAULT]:
            where = here["fit"], here["accuracy"]
            look = {"textcoords": "offset points", "ha": "center", "fontsize": "small"}
            panel.annotate(f"t = {here['t']}", where, (0, -15), **look)
    figure.savefig(path, dpi=80)


# -- cost


def cost_lines(rows, plan):
    """Yield the table and the aims."""
    yield COST.format(block=BLOCK, turns=N_TURNS) + "\n"
    yield table_head("data", "learner", "fit, s", "predict, s", "memory, MB", "file, MB")
    for row in rows:
        for learner, found in row["learners"].items():
            megabytes = (f"{found[key] / 1e6:.1f}" for key in ("memory", "file"))
            yield table_line(row["data"], learner, f"{found['fit']:.2f}", f"{found['predict']:.3f}", *megabytes)
    yield ""
    for row in rows:
        for key, most in MOST_TIMES.items():
            times = row["learners"][AT_100][key] / row["learners"][BEFORE][key]
            yield aim(f"{row['data']}: {key} at t = 100 at most {most:g} times before", f"{times:.2f}", times <= most)


# -- the page


SECTIONS = {
    "hindsight": ("Against the best setting in hindsight", hindsight_lines),
    "peers": ("Against peers", peer_lines),
    "partitionings": ("Number of partitionings", partitioning_lines),
    "cost": ("Cost of the choice", cost_lines),
}
FIGURES = {
    "peers": (draw_peers, "", "Accuracy against seconds of fit"),
    "partitionings": (draw_partitionings, "-t", "Accuracy against seconds of fit by t"),
}


def page_of(record, stem=None):
    """Return the page of all measured sections; with a stem, draw the figures too."""
    page = Page()
    introduction = INTRODUCTION.format(most=datasets.MOST_ROWS, fewest=datasets.FEWEST_ROWS)
    page.lines = ["# Defaults", "", introduction]
    for name, (title, lines) in SECTIONS.items():
        if section := record.get(name):
            rows = list(section["rows"].values())
            page.lines += [f"\n## {title}\n", *origin(section), "", *lines(rows, section["plan"])]
            if stem and name in FIGURES:
                draw, suffix, text = FIGURES[name]
                draw(rows, f"{stem}{suffix}.png")
                page.lines.append(f"\n![{text}]({Path(stem).name}{suffix}.png)")
    return page


def origin(section):
    """Yield where a section comes from."""
    yield circumstances(section)
    commits = list(dict.fromkeys(row["commit"] for row in section["rows"].values()))
    if len(commits) > 1:
        yield f"Rows were measured at the commits {', '.join(commits)}."
    if section["plan"]["n_rows"]:
        yield f"With `--quick`: at most {section['plan']['n_rows']:,} training and test rows."
