"""Judge the paper's claims by what was measured on each data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from isokern.experiments import settings
from isokern.experiments.accuracies import Accuracy, accuracy_of, is_lower, more_than
from isokern.experiments.experiment import Record, Verdict, is_stopped
from isokern.experiments.tables import accuracy_text, datasets_in, having, mean, seconds_text, select, sizes_in

Outcome = tuple[bool, str]  # whether the claim holds on a data set, and the numbers
Outcomes = Callable[[Sequence[Record]], Mapping[str, Outcome]]  # of the data sets that can be judged
Judge = Callable[..., Outcome]
Pair = tuple[str, str]  # a method and the key of a measurement

NO_MEASUREMENTS = "no measurements"


@dataclass(frozen=True)
class Claim:
    """A claim that must hold on every data set."""

    text: str
    rule: str
    outcomes: Outcomes
    datasets: tuple[str, ...] = ()  # the data sets that count, if not all
    where: str = "on every data set"
    otherwise: str = NO_MEASUREMENTS  # the finding if no data set can be judged
    is_of_cost: bool = False  # only then do generated data sets count
    is_of_size: bool = False  # whether stand-ins do not count, because they have fewer rows
    is_papers: bool = True  # False for claims that we add
    why: str = ""  # the known reason why it does not hold on some data sets, as a sentence

    def __call__(self, records: Sequence[Record]) -> Verdict:
        """Return the verdict; it names the data sets that cannot be judged because runs were stopped."""
        records = [record for record in records if self._counts(record)]
        outcomes = self.outcomes(records)
        judged = [(name, *outcomes[name]) for name in datasets_in(records) if name in outcomes]
        held = [f"{name} ({numbers})" for name, holds, numbers in judged if holds]
        failed = [f"{name} ({numbers})" for name, holds, numbers in judged if not holds]
        stopped = [name for name in datasets_in(filter(is_stopped, records)) if name not in outcomes]
        found = f"on {len(held)} of {len(judged)} data sets" if judged else self.otherwise
        found += f": {', '.join(held)}" if held else ""
        found += f"; not on {', '.join(failed)}" if failed else ""
        found += f"; not judged because runs were stopped: {', '.join(stopped)}" if stopped else ""
        rule = f"{self.rule}, {self.where}" + (" with all of its rows" if self.is_of_size else "")
        why = self.why if failed else ""
        return Verdict(self.text, rule, not failed if judged else None, found, self.is_papers, why)

    def _counts(self, record: Record) -> bool:
        dataset = record["dataset"]
        is_named = not self.datasets or dataset in self.datasets
        is_whole = not self.is_of_size or record.get("source", dataset) == dataset
        return is_named and is_whole and (self.is_of_cost or dataset not in settings.GENERATED)


def by_means(judge: Judge, *pairs: Pair) -> Outcomes:
    """Judge each data set by the means of (method, key) pairs, where all of them were measured."""
    return partial(_outcomes, judge, pairs, mean)


def by_ends(judge: Judge, axis: str, *pairs: Pair) -> Outcomes:
    """Judge each data set by the Ends of (method, key) pairs along an axis, where all of them were measured."""
    return partial(_outcomes, judge, pairs, partial(_ends, axis))


def _outcomes(judge: Judge, pairs: Sequence[Pair], summarise: Any, records: Sequence[Record]) -> dict[str, Outcome]:
    outcomes = {}
    for dataset in datasets_in(records):
        found = [summarise(select(records, dataset=dataset, method=method), key) for method, key in pairs]
        if None not in found:
            outcomes[dataset] = judge(*found)
    return outcomes


class Ends(NamedTuple):
    """The smallest and the largest measured value of an axis, and the means there."""

    smallest: int
    largest: int
    first: float
    last: float


def _ends(axis: str, records: Sequence[Record], key: str) -> Ends | None:
    measured = having(records, key)
    sizes = sizes_in(measured, axis)
    if len(sizes) < 2:
        return None
    first, last = (mean(measured, key, **{axis: size}) or 0.0 for size in (sizes[0], sizes[-1]))
    return Ends(sizes[0], sizes[-1], first, last)


Comparison = Callable[[Accuracy, Accuracy], bool]


def not_less_accurate(
    ours: str, other: str, text: str = "", *, tolerance: float = settings.TOLERANCE, remark: str = "", **options: Any
) -> Claim:
    """Claim that a method's accuracy is not lower than another's."""
    if not text:
        text = f"{ours} is at least as accurate as {other}"
        options["is_papers"] = not other.endswith(settings.FROM_DATA)
    rule = f"mean accuracy not lower by {more_than(tolerance)}{remark}"
    return _of_accuracies(text, rule, ours, other, lambda one, two: not is_lower(one, two, tolerance), **options)


def more_accurate(ours: str, other: str, text: str, *, remark: str = "", **options: Any) -> Claim:
    """Claim that a method's accuracy is higher than another's; accuracies that test rows cannot tell apart are not."""
    rule = f"mean accuracy higher by {more_than(settings.TOLERANCE)}{remark}"
    return _of_accuracies(text, rule, ours, other, lambda one, two: is_lower(two, one), **options)


def comparably_accurate(ours: str, other: str, text: str, *, tolerance: float, **options: Any) -> Claim:
    """Claim that the accuracies of two methods are about equal."""

    def judge(one: Accuracy, two: Accuracy) -> bool:
        return not is_lower(one, two, tolerance) and not is_lower(two, one, tolerance)

    rule = f"mean accuracies do not differ by {more_than(tolerance)}"
    return _of_accuracies(text, rule, ours, other, judge, **options)


def _of_accuracies(
    text: str,
    rule: str,
    ours: str,
    other: str,
    judge: Comparison,
    *,
    published: settings.Published | None = None,
    **options: Any,
) -> Claim:
    """Return a claim on two methods; where it fails, the published accuracies stand beside ours."""

    def outcomes(records: Sequence[Record]) -> dict[str, Outcome]:
        found = {}
        for dataset in datasets_in(records):
            one, two = (accuracy_of(select(records, dataset=dataset, method=name)) for name in (ours, other))
            if one is not None and two is not None:
                holds = judge(one, two)
                papers = "" if holds else _in_the_paper(published or {}, dataset, ours, other)
                found[dataset] = holds, f"{one.text} vs {two.text}{papers}"
        return found

    return Claim(text, rule, outcomes, **options)


def _in_the_paper(published: settings.Published, dataset: str, *methods: str) -> str:
    numbers = [published.get(name, {}).get("accuracy", {}).get(dataset) for name in methods]
    texts = [accuracy_text(number, 2) for number in numbers if isinstance(number, float)]
    return f"; in the paper {' vs '.join(texts)}" if len(texts) == len(methods) else ""


def times_faster(ratio: float, slow: float, *fast: float) -> Outcome:
    """Judge whether one time is at least so many times the sum of others."""
    return slow >= ratio * sum(fast), f"{seconds_text(sum(fast))} s vs {seconds_text(slow)} s"
