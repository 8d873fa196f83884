"""Ops: the functions that an implementation can be checked against, and their mistakes. One file per system, found by its name.

    alibi = op("alibi.bias")
    alibi.spec(**alibi.make(heads=12, form="signed"))   the right answer, at arguments that distinguish the mistakes
    alibi.mistakes["sign"].bug                          'the distance is query - key'

An op is a public function of the system's file: a function of a specification, `bias = t5.bias`, or one written with those. An
implementation receives the parameters before the `*`, in their order; those after it are settings. A mistake is a function
`wrong(f, a)` that returns a wrong answer, from the specification f and the arguments a. It runs on numbers, on numbers that
carry their error (`posref.check`) and on symbols (`proofs`). Mistakes that come with an argument, such as `positions`,
are in `common`. A file names one to give it other words: `"starts_at_one": Mistake("position_plus_one").words(..)`.

To write a mistake: `using(base=500000.0)` changes arguments; `result(lambda y: -y)` changes the result; `inside(alibi,
"slopes", change)` replaces a function within the specification; `instead(formula)` is another formula. Call `missing()` where
the mistake cannot occur. Every number of a mistake stands in its text, so that it can be redone from the text alone.
"""

import difflib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping
from functools import cache, wraps
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from posref import _require
from posref.ops.variation import steps, varied

__all__ = [
    "Arguments",
    "Mistake",
    "NotHere",
    "Op",
    "attends",
    "both",
    "changing",
    "flags",
    "inside",
    "instead",
    "missing",
    "names",
    "of_case",
    "op",
    "presets",
    "result",
    "system",
    "using",
]

Spec = Callable[..., Any]
Wrong = Callable[[Spec, Any], Any]


class NotHere(Exception):
    """The mistake cannot occur in this op, or not at these arguments."""


class Arguments(dict[str, Any]):
    """Arguments by name: `a.base` is `a["base"]`. A name that is not there raises NotHere.

    `by_length`, if not None, makes the frequencies for a text of a given number of tokens.
    """

    def __init__(self, *values: Any, **named: Any):
        super().__init__(*values, **named)
        self.by_length: Callable[[int], Any] | None = next((v.by_length for v in values if isinstance(v, Arguments)), None)

    def __or__(self, other: Any) -> "Arguments":  # type: ignore[override]
        new = Arguments(self)
        new.update(other)
        return new

    def __missing__(self, name: str) -> Any:
        raise NotHere(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]


class Mistake(NamedTuple):
    """One way to be wrong. `wrong` is the function, or the name of the shared mistake that gets these words here.

    `bug` says what the implementation does, `effect` what a person sees, `remedy` what to write instead, `seen_in` lists
    issues. Two mistakes of one `kind` are not combined. `only` names the ops that can have the mistake, with their system if
    several systems have an op of that name; empty means all. `asked` has other words for some values of settings.
    """

    wrong: Any
    bug: str = ""
    effect: str = ""
    remedy: str = ""
    seen_in: tuple[str, ...] = ()
    kind: str = ""
    only: str = ""
    asked: tuple[tuple[tuple[str, Any], "Mistake"], ...] = ()

    def words(self, text: str) -> "Mistake":
        """This mistake with bug, effect and remedy from three lines of text; an indented line continues the line before it.

        >>> Mistake("sign").words('''
        ...     the offset has the
        ...       wrong sign
        ...     Far tokens are preferred.
        ... ''')[1:3]
        ('the offset has the wrong sign', 'Far tokens are preferred.')
        """
        bug, effect, *remedy = re.sub(r"\n +", " ", inspect.cleandoc(text)).split("\n")
        return self._replace(bug=bug, effect=effect, remedy=" ".join(remedy))

    def where(self, text: str) -> "Mistake":
        """This mistake with other words for one value of a setting, since not every form has the same effect. The first line of
        the text is that value, such as `form=key`."""
        asked, _, words = text.partition("\n")
        setting, _, value = asked.partition("=")
        return self._replace(asked=(*self.asked, ((setting, value), Mistake(None).words(words))))

    def at(self, a: Mapping[str, Any]) -> "Mistake":
        """This mistake in the words for these arguments."""
        others = (words for (setting, value), words in self.asked if a.get(setting) == value)
        words = next(others, self)
        return self._replace(bug=words.bug, effect=words.effect, remedy=words.remedy)


class Op(NamedTuple):
    """A function to check, `spec(**arguments)`. Implementations receive `given`; the arguments of `make` distinguish the
    mistakes."""

    name: str
    spec: Spec
    given: tuple[str, ...]
    make: Callable[..., Arguments]
    mistakes: dict[str, Mistake]
    inside: Callable[[Arguments], Any] = lambda a: 0.0  # amplitude of what is made from whole numbers, which carry no error
    spectral: Callable[[Arguments], Any] = lambda a: 0.0  # what a Fourier transform rounds, in unit roundoffs of float32
    meant: Callable[[Arguments], Any] = lambda a: True  # the elements that have a meaning; others may be anything
    further: Mapping[str, Mistake] = MappingProxyType({})  # mistakes of these settings, asked after all others
    tags: frozenset[str] = (
        frozenset()
    )  # attention, gradient, rotation, frequencies, waves, padding: stages of the check look here
    turned: Any = None  # the argument whose pairs RoPE rotates; "" where the result is the tables of cos and sin


def missing() -> Any:
    """Say that the mistake cannot occur here: raises NotHere."""
    raise NotHere


def using(**change: Any) -> Wrong:
    """The specification with other arguments: values, or functions of all arguments. NotHere if a name is no argument."""

    def wrong(f: Spec, a: Arguments) -> Any:
        if not change.keys() <= a.keys():
            missing()
        return f(**a | {name: new(a) if callable(new) else new for name, new in change.items()})

    wrong.change = change  # type: ignore[attr-defined]
    return wrong


def changing(change: Callable[[Any], Any], *names: str) -> Wrong:
    """The specification with `change(argument)` in place of each of these arguments."""
    return using(**{name: lambda a, n=name: change(a[n]) for name in names})


def result(change: Callable[..., Any]) -> Wrong:
    """The right result, changed: `change(result)` or `change(result, arguments)`."""
    if _takes_arguments(change):
        return lambda f, a: change(f(**a), a)
    return lambda f, a: change(f(**a))


def _takes_arguments(change: Callable[..., Any]) -> bool:
    """Whether a change takes the arguments too. Functions of numpy do not; in old versions they have no signature."""
    try:
        return sum(p.default is p.empty for p in inspect.signature(change).parameters.values()) == 2
    except ValueError:
        return False


def instead(formula: Callable[..., Any]) -> Wrong:
    """Another formula, whose parameters are arguments of the op."""
    needed = inspect.signature(formula).parameters

    def wrong(f: Spec, a: Arguments) -> Any:
        return formula(**{name: a[name] for name in needed}) if needed.keys() <= a.keys() else missing()

    return wrong


def inside(module: ModuleType, name: str, change: Callable[..., Any]) -> Wrong:
    """The specification with another function in place of `module.name`: `change(right)` or `change(right, arguments)`."""
    takes_arguments = _takes_arguments(change)

    def wrong(f: Spec, a: Arguments) -> Any:
        right, calls = getattr(module, name), []
        changed = change(right, a) if takes_arguments else change(right)

        def replacement(*x: Any, **named: Any) -> Any:
            calls.append(named)
            return changed(*x, **named)

        y = varied(f, right, replacement)(**a)
        return y if calls else missing()

    wrong.step = module, name  # type: ignore[attr-defined]
    return wrong


def both(*wrongs: Wrong) -> Wrong:
    """Several mistakes at once: each is applied on top of the one before."""

    def wrong(f: Spec, a: Arguments) -> Any:
        for each in wrongs:
            f = _varied(each, f)
        return f(**a)

    return wrong


def names() -> list[str]:
    """The systems with ops, sorted.

    >>> "alibi" in names()
    True
    """
    return sorted(
        info.name
        for info in pkgutil.iter_modules(__path__)
        if info.name not in ("chunks", "common", "layers", "pages", "probe", "variation")
    )


@cache
def system(name: str) -> dict[str, Op]:
    """Every op of a system by its name: the public functions of its file, also those of specifications, in their order.

    >>> list(system("alibi"))
    ['slopes', 'shard', 'bias', 'attend']
    """
    if name not in names():
        near = _nearest(name)
        known = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names())}"
        raise ValueError(f"ops.system: there is no system {name!r}; {known}")
    module = importlib.import_module(f"{__name__}.{name}")
    functions = {name: f for name, f in vars(module).items() if inspect.isfunction(f) and not name.startswith("_")}
    return {name: _op(module, name, f) for name, f in functions.items() if _is_asked(module, f)}


def _is_asked(module: ModuleType, f: Spec) -> bool:
    """Whether a function of a system's file is an op: written there, or a function of a specification."""
    return f.__module__ == module.__name__ or (f.__module__.startswith("posref.") and not f.__module__.startswith(__name__))


def _called_as_written(f: Spec) -> Spec:
    """A function of a specification, called with its arguments before the `*` by position."""
    parameters = inspect.signature(f)

    @wraps(f)
    def spec(*x: Any, **named: Any) -> Any:
        given = parameters.bind_partial(*x, **named)
        return f(*given.args, **given.kwargs)

    return spec


def _nearest(name: str) -> list[str]:
    """The ops of this name in any system; if there are none, the systems with similar names."""
    ops = [f"{each}.{last}" for each in names() for last in system(each) if last == name]
    return ops or difflib.get_close_matches(name.lower(), names(), n=3)


def op(name: str) -> Op:
    """An op by its full name. ValueError with the ops of the system if there is no such op.

    >>> op("t5.bias").given
    ('query_positions', 'key_positions', 'table')
    """
    family, _, last = name.partition(".")
    found = system(family)
    if last not in found:
        known = [f"{family}.{each}" for each in found]
        raise ValueError(f"ops.op: there is no op {name!r}; there are {', '.join(known)}{_require.near(name, known)}")
    return found[last]


def flags(name: str) -> dict[str, dict[str, Any]]:
    """The system's own mistakes in the words of its vector file.

    >>> flags("alibi")["sign"]["effect"]
    'Far tokens are preferred.'
    """
    own = importlib.import_module(f"{__name__}.{name}").MISTAKES
    return {flag: {"bug": m.bug, "effect": m.effect, "seen_in": list(m.seen_in)} for flag, m in own.items()}


def worded(op: Op, a: Mapping[str, Any]) -> Op:
    """The op, with its mistakes in the words for these arguments."""
    own, more = ({name: m.at(a) for name, m in of.items()} for of in (op.mistakes, op.further))
    return op._replace(mistakes=own, further=more)


def further(op: Op, a: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Mistake]:
    """Mistakes that are tried after all others, in the words for these arguments: `FURTHER` of attention, of `common` and of
    the op's file and, if the op attends, all mistakes of attention. No golden vectors are made for them."""
    names = ("attention", "common", op.name.split(".")[0])
    files = [importlib.import_module(f"{__name__}.{name}") for name in names]
    listed = [files[0].MISTAKES] * ("attention" in op.tags) + [getattr(file, "FURTHER", {}) for file in files]
    found = {name: m for each in listed for name, m in each.items() if name not in op.mistakes}
    here = {name: m for name, m in found.items() if not m.only or {op.name, op.name.split(".")[1]} & {*m.only.split()}}
    return {name: m.at(a) for name, m in here.items() if _may_have_a_place(m, op.spec)}


@cache
def presets() -> dict[str, tuple[str, dict[str, Any]]]:
    """Released configurations that can be checked: name -> (op, settings).

    >>> presets()["bloom_176b"]
    ('alibi.bias', {'heads': 112, 'max_bias': 8, 'form': 'key'})
    """
    found = {}
    for name in names():
        of = getattr(importlib.import_module(f"{__name__}.{name}"), "PRESETS", {})
        for preset, (last, values) in of.items():
            found[preset] = f"{name}.{last}", {key: value for key, value in values.items() if key != "source"}
    return found


def of_case(case: Any) -> tuple[Op, Arguments]:
    """The op of a golden case and its arguments."""
    from posref.ops import probe

    found = op(f"{case.id.split('/')[0]}.{case.op}")
    named = {_CALLED.get(name, name): value for name, value in {**case.tensors, **case.params}.items()}
    if "seen" in named:  # files hold no booleans
        named["mask"] = named["seen"] != 0
    return found, probe.completed(found.spec, named)


_CALLED = {
    "queries": "query_positions",
    "keys": "key_positions",
    "q_positions": "query_positions",
    "k_positions": "key_positions",
}


def _op(module: ModuleType, last: str, f: Spec) -> Op:
    from posref.ops import common, probe

    f = f if f.__module__ == module.__name__ else _called_as_written(f)
    parameters = inspect.signature(f).parameters
    shared = common.mistakes(parameters)
    mistakes = {}
    for name, mistake in module.MISTAKES.items():
        if mistake.only and last not in mistake.only.split():
            continue
        if not isinstance(mistake.wrong, str):
            mistakes[name] = mistake
        elif mistake.wrong in shared:
            of = shared[mistake.wrong]
            mistakes[name] = mistake._replace(wrong=of.wrong, kind=of.kind, remedy=mistake.remedy or of.remedy)
    renamed = {m.wrong for m in module.MISTAKES.values() if isinstance(m.wrong, str)} | getattr(module, "REPLACED", set())
    mistakes |= {name: m for name, m in shared.items() if name not in module.MISTAKES.keys() | renamed}
    mistakes = {name: m for name, m in mistakes.items() if _may_have_a_place(m, f)}
    given = tuple(name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY)
    make = probe.maker(f, given, getattr(module, "ARRAYS", {}), getattr(module, "ASKED", ()), getattr(module, "EXTENTS", {}))
    name = f"{module.__name__.rsplit('.', 1)[1]}.{last}"
    return Op(name, f, given, make, mistakes, **_of_its_own(module, last))


def _may_have_a_place(mistake: Mistake, f: Spec) -> bool:
    """Whether f can call the step that a mistake changes: for instance, no bias is added where no scores are computed."""
    module, name = getattr(mistake.wrong, "step", (None, ""))
    return module is None or getattr(module, name) in steps(f)


def _of_its_own(module: ModuleType, last: str) -> dict[str, Any]:
    """The op's entries in `INSIDE`, `SPECTRAL`, `MEANT` and `TURNED` of its file, and its tags, with those of `TAGS`."""
    tables = {field: getattr(module, field.upper(), {}) for field in ("inside", "spectral", "meant", "turned")}
    tags = {"attention": attends(last), "gradient": "gradient" in last, getattr(module, "TAGS", {}).get(last): True}
    found = {field: table[last] for field, table in tables.items() if last in table}
    return found | {"tags": frozenset(tag for tag, holds in tags.items() if holds and tag)}


def attends(name: str) -> bool:
    """Whether an op returns outputs of attention. These are sums of sums, whose errors are far below the worst case."""
    return "attend" in name and "gradient" not in name


def _varied(wrong: Wrong, f: Spec) -> Spec:
    return lambda **a: wrong(f, Arguments(a))
