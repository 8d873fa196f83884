"""Verdict: whether an output is right, in which precision, and what cannot be distinguished from it; or which formula it is."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from posref import ops, pairing
from posref.check import (
    distances,
    edits,
    factors,
    fitted,
    frameworks,
    general,
    grids,
    indices,
    masks,
    other_settings,
    parts,
    rearranged,
    weightings,
    weights,
)
from posref.check.engine import Found, Named, Question, distance, ratios, separates
from posref.check.ranged import MEANING, models
from posref.check.report import Finding, Precision, Report
from posref.check.rotary import phases, waves
from posref.check.rounded import BITS
from posref.check.tensors import round_to
from posref.check.wrong_elements import (
    broadcast,
    not_computed,
    not_finite,
    of_a_part,
    of_padding,
    one_part,
    reshaped_input,
    untouched,
    worst_element,
)
from posref.ops import Mistake, using

Read = Callable[[Question, np.ndarray], Iterable[Iterable[Named]]]
AXES = ("batch", "heads", "n", "dim")
WRITES = (
    "Check that the function writes its result into the array that it returns, and that positions and tables are not all 0."
)
MASKED = "Apply this mask too, where another one such as that of padding is applied."
UNCHANGED = "Compute the result where it has as many numbers as the input, too: its shape is another."
READS = "Check that the function reads its inputs and returns what it computed."
ALL = ": all give these numbers here."  # how a line about several mistakes ends
BOOLEANS = "Compare a mask that is added: mask == 0 is True where a key may be seen."
NO_KEY = "Rows of NaN were read as rows of zeros, which posref has where a query sees no key."
ROUNDING = 8  # times what is allowed: an error that another order of rounding may leave
COARSE = "So small an error may be rounding: compute in float64; if it is gone, find the step that has fewer bits."
INPUTS = 2.0**-6  # all numbers of the arrays of a question are multiples of it, and numbers of 16 bits
ON_GRID = "Every number of your output is one of {0}, though its dtype is wider: perhaps a step is held in {0}."
IN_16_BITS = "All errors are as small as those of 16 bits: perhaps a step is held in bfloat16 or float16."
STORED = "Keep these numbers in 16 bits or more, or check them before they are stored."
HIDDEN = -100.0  # added to a score: beside any other key e^-100 is nothing
MOST_NAMES = 2  # of mistakes that any op can have: of more that fit, each is a guess
SHORT = {"bfloat16": "bf16", "float16": "f16"}


@np.errstate(all="ignore")
def judged(report: Report, question: Question, got: np.ndarray, read: Read | None = None, *, pairs: bool = False) -> bool:
    """Add shape, finite numbers and values to the report, and the mistakes that explain them; True if the values are right.

    `read` gives hypotheses from the output, tried if no listed mistake fits, before other numbers; `pairs` also tries two
    mistakes.
    """
    if not _same_shape(report, question, got):
        if got.any():  # zeros of another shape are no mistake's
            _named(report, question, question.ask(got, _of_another_shape))
        return False
    if _additive(report, question, got):
        part = Report(report.subject)
        if judged(part, question, as_booleans(question, got), read, pairs=pairs):
            report.diagnosis.append(Finding("additive_mask", "your output is right where it is read as mask == 0", BOOLEANS))
        report.diagnosis += part.diagnosis
        report.advice += [line for line in part.advice if line not in report.advice]
        return False
    bad = ~np.isfinite(got)
    if bad.any():
        report.failed("finite", not_finite(question, got, bad))
        if bad.all():
            return False

    def single(question: Question, got: np.ndarray) -> Iterator[Iterable[Named]]:
        own = [each for each in question.op.further.items() if each[1].kind == "setting"]
        listed = [*question.op.further.items(), *ops.further(question.op, question.a).items()]
        numbers = [each for each in listed if each[1].kind == "setting" and each not in own]
        yield [each for each in listed if each[1].kind != "setting"]
        yield weightings.with_uniform_rows(question, got, chain(question.op.mistakes.items(), listed))
        yield fitted.of_steps(question.op.spec, question.a)
        yield from of_padding(question, got)
        if _values(question, got) >= 3:  # one or two values are met by some number, whatever the cause
            yield own
            yield general.places(question, got)
            yield from read(question, got) if read else ()
            yield factors.hypotheses(question, got)
            yield chain(
                numbers, other_settings.hypotheses(question), general.shifts(question)
            )  # n + 1 for n may be one too many in the result
            yield other_settings.exchanged(question)
            yield general.in_16_bits(question, got)
        elif np.isin(question.right, (0, 1)).all() and got.size > 2:
            yield other_settings.neighbors(question)
        yield weightings.with_more_in_the_sum(question, got)
        yield from (fitted.of_settings(question, got), fitted.of_result(question, got), fitted.of_inputs(question, got))
        first, *others = general.stages(question, got)
        yield from (first, fitted.of_arrays(question, got), *others)
        yield weightings.hypotheses(question)
        yield weightings.shifted(question, got)
        yield weightings.in_16_bits(question, got)
        yield masks.hypotheses(question, got)
        yield distances.hypotheses(question, got)
        yield indices.hypotheses(question, got)
        yield indices.reindexed(question, got, ("heads", "batch rows"))
        yield not_computed(question, got)
        yield rearranged.hypotheses(question, got)
        yield from waves.stages(question, got)
        yield from phases.far_positions(question, got)
        yield of_a_part(question, got, lambda: chain(question.op.mistakes.items(), listed))
        yield of_a_part(question, got, lambda: next(general.stages(question)))

    def stages(question: Question, got: np.ndarray) -> Iterator[Iterable[Named]]:
        yield from single(question, got)
        yield edits.hypotheses(question, got)
        yield parts.hypotheses(question, got)
        yield indices.reindexed(question, got)  # sines in the place of cosines are another order of features, too
        yield fitted.of_result(question, got, (fitted.MORE,))
        constants = general.relation(question, got, question.models[-1]).startswith(general.ROW)
        bits = question.kind == "b" and not general.in_several_places(question, got)
        tried = (
            pairs and not constants and not bits and np.isfinite(got).all()
        )  # some pair of mistakes fits one or two wrong bits
        yield from [question.pairs(), of_a_part(question, got, question.pairs, pairs=True)] if tried else []
        yield general.with_a_factor(question, got)

    found = question.ask(got)
    if found.ok:
        report.passed("values", f"largest error: {found.worst:.2g} of what rounding allows" if found.worst else "exactly equal")
        report.precision = Precision(found.model, found.worst, MEANING[found.model])
        return True
    if not bad.any():
        report.failed("values", worst_element(question, got, found.model))
        if np.abs(got - question.right).max() <= 2.0**-64 * np.abs(question.right).max():
            return False  # what vanishes beside the other numbers, such as a flush to 0, shows no formula
    same = reshaped_input(question, got)
    nothing = "" if found.fits and got.any() else untouched(got, question.a) or (same and f"equals {same} in another shape")
    if nothing:
        sentence = (
            f"your output {nothing}{'' if got.any() else ' everywhere'}: nothing was computed{_or_of_zeros(question, got)}"
        )
        report.found("nothing_computed", sentence, WRITES)
        return False
    if question.gauge != "none" and _constant_named(report, question, got):
        return False  # no more than zeros, where a constant may be added to a row
    found = _read(found, question, got)
    if same and found.fits:  # what leaves this input as it is may not say so
        found = found._replace(fits=(_unchanged(same, got.shape), *found.fits))
    grid, once = grids.found(got, question.right, question.tolerance[found.model]) if not found.fits else ("", False)
    if once:
        report.found("rounded_to_few_bits", f"your output is the right one, rounded to {grid}", STORED)
        return False
    low, worst = None if found.fits or grid else _grid(question, got, found.model), found.worst
    if low is not None:  # what fits as it is needs no rounding to explain it: few or round numbers fit any grid by chance
        found = question.ask(got, stages)
    if low is not None and not found.fits:
        names = models(low, question.a)
        narrow = Question(question.op, question.a, names, right=question.right, gauge=question.gauge)
        found = narrow.ask(got, single)  # one mistake and few bits, or two mistakes: not all three
        fits = tuple(each for each in found.fits if _rounded(question, narrow.answer(each[0], each[1].wrong), got, low))
        _named(report, question, found._replace(ok=found.ok and _rounded(question, question.right, got, low), fits=fits), low)
    else:
        _named(report, question, found if found.fits else _read(question.ask(got, stages), question, got))
    if not report.diagnosis:
        _constant_named(report, question, got)
    rows = bad.any() and bool((bad == bad.all(axis=-1, keepdims=True)).all())  # of NaN alone
    elsewhere = (ratios(got, question.right, question.tolerance[question.models[-1]])[~bad] > 1).any()
    if rows and elsewhere and not report.diagnosis and "attention" in question.op.tags:  # NaN alone fits whatever gives zeros
        part = Report(report.subject)
        judged(part, question, np.where(bad, 0, got), read)
        report.diagnosis += part.diagnosis
        report.advice += [NO_KEY, *part.advice] if part.diagnosis else []
    if not report.diagnosis and (low or grid) and (got % INPUTS).any():
        report.advice.append(ON_GRID.format(low or grid))
    if not report.diagnosis and (words := weights.added(question, got)):
        report.found("bias_added", f"your output is that of right scores to which {words}", weights.REMEDY)
    if not report.diagnosis and (shares := weights.merged(question, got)):
        words, law = shares
        if law:
            sentence = f"your output is that of two parts that are merged: {words}: {law}"
            report.found("parts_merged", sentence, weights.MERGE)
        else:
            report.failed("weights", words)
    if not report.diagnosis and worst < ROUNDING:
        report.advice.append(COARSE)
    elif not report.diagnosis and _within_16_bits(question, got):
        report.advice.append(IN_16_BITS)
    return False


def _of_another_shape(question: Question, got: np.ndarray) -> Iterator[Iterable[Named]]:
    yield general.arrangements(question, got)
    yield rearranged.hypotheses(question, got)
    yield chain(other_settings.neighbors(question, got.shape), other_settings.hypotheses(question, got.shape))
    yield rearranged.of_arguments(question, got)


def decided(report: Report, question: Question) -> bool:
    """Whether a plainly wrong output would fail here. If only the right numbers in reverse would pass too, this is
    undecided."""
    model = needed(report, question)
    passing = question.passing(model)
    if question.right.any() and any("times" in words for words in passing):
        report.failed("precision", f"{model} cannot decide: {' and '.join(passing)} would pass too; check in float32")
        return False
    if passing:
        report.ambiguous.append(f"{' and '.join(passing)} would be right too on this data.")
    return True


def needed(report: Report, question: Question) -> str:
    """The model that the output needed; if that is unknown, the coarsest that it may need."""
    return report.precision.model if report.precision else question.models[-1]


def unseen(report: Report, first: Question, *others: Question) -> list[str]:
    """Mistakes that none of the questions distinguishes from the right answer."""
    names = first.blind(needed(report, first))
    for other in others:
        names = other.blind(needed(report, first), names)
    return names


def blind(report: Report, question: Question, *others: Question, most: int = 12) -> None:
    """Say which mistakes would have given the same output on the data of these questions."""
    model, known = needed(report, question), {finding.name for finding in report.diagnosis}
    names = [name for name in unseen(report, question, *others) if name not in known]
    if names:
        more = f"; and {len(names) - most} more" if len(names) > most else ""
        report.ambiguous.append(f"these mistakes would give the same output on this data: {'; '.join(names[:most])}{more}.")
    if 2 * len(names) > len(question.wrong) and not model.startswith(("f64", "f32")):
        report.skipped("resolution", f"{model} hides {len(names)} of {len(question.wrong)} mistakes; check in float32 as well")


def _spread(question: Question, got: np.ndarray) -> str:
    """Words for an output with too few axes: which row or head of the right result it is, or how it relates to all of them."""
    whole = broadcast(got, question.right.shape)
    words = "" if whole is None else general.relation(question, whole, question.models[-1])
    return one_part(question, got) or (words and f"; {words}")


def _same_shape(report: Report, question: Question, got: np.ndarray) -> bool:
    """Whether the shape is right; for a transposed output the axes are named, if all extents differ."""
    shape, expected = got.shape, question.right.shape
    if shape == expected:
        report.passed("shape")
        return True
    detail = f"the output has shape {shape}, expected {expected}"
    if len(shape) == 4 and sorted(shape) == sorted(expected) and len(set(expected)) == 4:
        detail += f": its axes are ({', '.join(AXES[expected.index(size)] for size in shape)}), not ({', '.join(AXES)})"
        report.advice.append("Transpose the output back to the axes of x.")
    report.failed("shape", detail + _spread(question, got))
    return False


def as_booleans(question: Question, got: np.ndarray) -> np.ndarray:
    """An additive mask, of 0 and very negative numbers, as mask == 0 if booleans are asked for; any other output unchanged."""
    added = question.kind == "b" and (got < 0).any() and ((got == 0) | (got <= HIDDEN)).all()
    return np.where(got == 0, 1.0, 0.0) if added else got


def _additive(report: Report, question: Question, got: np.ndarray) -> bool:
    """Whether the output is an additive mask and the specification returns booleans; the report then says so."""
    if as_booleans(question, got) is got:
        return False
    numbers = f"the output has numbers from {got.min():g} to {got.max():g}, a mask to be added"
    report.failed("booleans", f"{question.op.name} is asked for booleans, True = may be seen; {numbers}")
    report.advice.append(BOOLEANS)
    return True


def _constant_named(report: Report, question: Question, got: np.ndarray) -> bool:
    """Say that all elements are equal although the right ones are not."""
    if not _constant(got) or _constant(question.right):
        return False
    first = ", the first right number" if got.flat[0] == question.right.flat[0] else ""
    sentence, remedy = f"your output is {got.flat[0]:.10g} everywhere{first}, for inputs that give different numbers", READS
    if question.kind == "b" and got.all():
        sentence, remedy = f"{sentence}: every query sees every key, as where this mask is not applied", MASKED
    report.found("constant_output", sentence, remedy)
    return True


def _read(found: Found, question: Question, got: np.ndarray) -> Found:
    """The fits without mistakes in positions, if a constant output is True everywhere or fits several: it read no position."""
    constant = _constant(got)  # one number is its own first
    fits = tuple(each for each in found.fits if not (constant and each[0].endswith("_all_the_first")))
    others = tuple(each for each in fits if each[1].kind != "positions")
    undecided = (got.all() and question.kind == "b") or len(fits) - len(others) > 2
    return found._replace(fits=others if constant and undecided else fits)


def _or_of_zeros(question: Question, got: np.ndarray) -> str:
    """Words for arguments that give this output if they are all 0: with positions of 0, a rotation leaves x as it is."""
    arrays = [name for name in question.op.given if np.asarray(question.a.get(name)).dtype.kind in "iuf"]
    wrong = {name: using(**{name: lambda a, name=name: 0 * a[name]}) for name in arrays}
    answers = {name: question.answer(f"{name}_zero", wrong[name]) for name in arrays}
    names = [name for name, answer in answers.items() if answer is not None and np.array_equal(got, answer)]
    return f", or all numbers of {' or of '.join(names)} are 0" if names else ""


def _unchanged(name: str, shape: tuple[int, ...]) -> tuple[str, Mistake, float]:
    """The mistake that an input is returned as it is, in the shape of the result."""
    words = f"{name} is returned as it is, in the shape {shape}: every number, in its order"
    return "unchanged", Mistake(lambda f, a: a[name].reshape(np.shape(f(**a))), words, remedy=UNCHANGED), 0.0


def _constant(y: np.ndarray) -> bool:
    return y.size > 2 and bool(np.isfinite(y).all()) and bool((y == y.flat[0]).all())


def _values(question: Question, got: np.ndarray) -> int:
    """How many distinct values the output has where it differs from the right one."""
    model = question.models[-1]
    return len(np.unique(got[ratios(got, question.right, question.tolerance[model]) > min(1, question.limit(model))]))


def _grid(question: Question, got: np.ndarray, model: str) -> str | None:
    """The 16-bit dtype that holds all values, if the result is wider and that dtype does not hold the right values; else None.

    Integers prove nothing, since 16 bits hold them whatever computed them.
    """
    whole = any((y == np.round(y)).all() for y in (question.right, got))
    if not model.startswith(("f32", "f64")) or not np.isfinite(got).all() or whole:
        return None
    meant = (dtype for dtype, short in SHORT.items() if any(name.startswith(short) for name in question.meant))
    told = (dtype for dtype in meant if (round_to(question.right, dtype) != question.right).any())
    return next((dtype for dtype in told if (round_to(got, dtype) == got).all()), None)


def _within_16_bits(question: Question, got: np.ndarray) -> bool:
    """Whether the output would be right in a 16-bit dtype whose bound still distinguishes the right numbers from others.

    Errors above four units of bfloat16 at the largest number of a row are no rounding, though long sums have wider bounds.
    """
    units = 4 * 2.0 ** -BITS["bf16"] * np.abs(question.right).max(axis=-1, keepdims=True, initial=0)
    whole = (question.right == np.rint(question.right)).all()
    if whole or not question.models[-1].startswith(("f32", "f64")) or (np.abs(got - question.right) > units).any():
        return False
    narrow = (Question(question.op, question.a, models(dtype, question.a)[-1:], right=question.right) for dtype in SHORT)
    bounds = (bound for each in narrow for bound in each.tolerance.values())
    return any(distance(got, question.right, y) <= 1 and separates(question.right, y) for y in bounds)


def _rounded(question: Question, answer: Any, got: np.ndarray, low: str) -> bool:
    """Whether the output equals an answer within four units of a 16-bit dtype at the answer's largest value.

    The tolerance of the wider dtype, which is large far from position 0, is added.
    """
    few = 4 * 2.0 ** -BITS[SHORT[low]] * np.abs(answer).max(initial=0) + question.tolerance[question.models[-1]]
    return answer.shape == got.shape and bool((np.abs(got - answer) <= few).all())


def _named(report: Report, question: Question, found: Found, low: str | None = None) -> None:
    """Put what fits into the report; `low` is the 16-bit dtype that holds all values of a wider result."""
    determined = _determined(report, question, found.fits)
    fits = [*determined, *[("", None, found.worst)] * found.ok]
    advice = []
    question.claimed |= {name: mistake for name, mistake, _ in determined}
    for name, mistake, worst in fits:
        claims = [_claim(question, name, mistake)] if mistake else []
        words = " ".join(filter(None, (mistake.effect, mistake.remedy))) if mistake else ""
        remedies = [words] if words else []
        if low is not None:
            name = f"{name} and computed in {low}" if name else f"computed in {low}"
            claims.append(f"computed in {low}: every value is a {low} number, though the dtype of the result is wider")
            remedies.append(f"Compute in float32; if {low} is meant, return it, or diagnose with dtype={low}.")
        sentence = f"your output equals {question.op.name} {', and '.join(claims)}"
        report.diagnosis.append(Finding(name, sentence, "\n".join(remedies), worst))
        advice.append([line for remedy in remedies for line in remedy.split("\n")])
        if "other_layout" in name and question.a.get("layout") in pairing.LAYOUTS:
            advice[-1] = [_pairing(question.a), *advice[-1], f"Settings {frameworks.advice(question.a.layout)}."]
    if all(lines == advice[0] for lines in advice):  # who has made one of several mistakes is led astray by the others' advice
        report.advice += [line for lines in advice[:1] for line in dict.fromkeys(lines) if line not in report.advice]
    if len(fits) > 1:
        report.ambiguous.append("; ".join(name for name, _, _ in fits) + ALL)
    if determined or not found.fits:
        helpful = [
            (name, ratio)
            for name, ratio in found.nearest
            if ratio * max(8, ratio) < min(found.worst, 2**20)
            and question.kind not in "iub"
            and not re.search(" at (most|least) ", name)
        ]  # what leaves half of the digits of the error is no hint, nor is a limit that does not fit
        report.nearest, report.ruled_out, report.stopped = helpful, found.tried, found.stopped


def _determined(report: Report, question: Question, fits: Iterable[Any]) -> list[Any]:
    """What fits, without values of settings if several give the same numbers: these are reported as undecided.

    The same value under two names counts once, by its first name.
    """
    fits = [*fits]
    once = {_claim(question, name, mistake): name for name, mistake, _ in fits[::-1] if mistake.kind == "setting"}
    names = [*once.values()][::-1]
    general = [name for name, mistake, _ in fits if mistake.kind == "general"]
    undecided = general if len(general) > MOST_NAMES else []
    if undecided:
        report.ambiguous.append(f"{'; '.join(undecided)}: all would give these numbers.")
    if len(names) > 1:
        report.ambiguous.append(f"{'; '.join(names)}: all would give these numbers.")
    return [each for each in fits if each[0] not in undecided and (each[1].kind != "setting" or names == [each[0]])]


def _pairing(a: Any) -> str:
    """What to do about the other layout.

    >>> from posref.ops import Arguments
    >>> _pairing(Arguments(layout="half", dim=64))
    'Pair features t and t + 32, not 2t and 2t + 1.'
    """
    half = a.dim // 2 if "dim" in a else "dim/2"
    pairs = {"half": f"t and t + {half}", "interleaved": "2t and 2t + 1"}
    asked = pairs.pop(a.layout)
    return f"Pair features {asked}, not {pairs.popitem()[1]}."


def _claim(question: Question, name: str, mistake: Mistake) -> str:
    """Words for a mistake: the setting that was used and the one asked for; the edited line; else its name and what is
    wrong."""
    change = getattr(mistake.wrong, "change", {})
    if len(change) == 1:
        ((setting, new),) = change.items()
        old, new = question.a[setting], new(question.a) if callable(new) else new
        if all(value is None or isinstance(value, (str, int, float)) for value in (old, new)):
            power = other_settings.as_exponent(new, old) if setting == "base" else _or_beyond(question, setting, old, new)
            return f"with {setting}={_said(new)}{power}; you asked for {setting}={_said(old)}"
    if mistake.bug == name:  # another array: twice the slopes
        return f"with {name} instead of {' and '.join(change)}"
    return mistake.bug if mistake.kind in ("edit", "padding") else f"with the mistake {name}: {mistake.bug}"


def _or_beyond(question: Question, setting: str, old: Any, new: Any) -> str:
    """Words, if a number that is twice as far from the one asked for gives the same answer: then this one is not known."""
    if any(type(value) not in (int, float) for value in (old, new)):
        return ""
    one, other = (question.answer(f"{setting}={value}", using(**{setting: value})) for value in (new, 2 * new - old))
    same = one is not None and other is not None and np.array_equal(one, other)
    return f" or {'more' if new > old else 'less'}" if same else ""


def _said(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:.10g}" if isinstance(value, float) else str(value)
