"""Discovery: finds all systems by reading the modules themselves.

A system is a public module in the package of a family (`FAMILIES`). No list names the systems: `posref list` reads the
docstring of a module, its `PRESETS`, the released models that use it, and the golden vectors with its name.
"""

import difflib
import functools
import importlib
import inspect
import pkgutil
import re
from typing import NamedTuple

from posref import _pages as pages
from posref import statements, vectors
from posref.explain.presets import uses

FAMILIES = {"absolute": "input", "rotary": "q, k", "relative": "scores", "state": "state"}  # and where position enters
MANY = 4  # models are counted, not named
COMMON = ("attention", "offsets", "pairing", "position_ids", "shards")  # no systems of their own, but shown like one


class System(NamedTuple):
    """One system. `presets` are released models that use it, and presets of its module; `functions` are in file order."""

    name: str
    title: str
    family: str
    references: str
    presets: tuple[str, ...]
    functions: tuple[str, ...]
    vectors: tuple[str, ...]


def names():
    """Names of all systems, family by family.

    >>> "rotary.rope" in names()
    True
    """
    return [*_names()]


@functools.cache
def _names():
    return tuple(
        f"{family}.{module.name}"
        for family in FAMILIES
        for module in pkgutil.iter_modules(importlib.import_module(f"posref.{family}").__path__)
        if not module.name.startswith("_")
    )


@functools.cache
def system(name):
    """The `System` of a full name.

    >>> system("rotary.rope").title
    'RoPE: rotary position embedding.'
    """
    module = importlib.import_module(f"posref.{name}")
    said = page(name)
    return System(
        name=name,
        title=said.title,
        family=name.split(".")[0],
        references=said.references,
        presets=(*(model for model, used in uses().items() if name in used), *getattr(module, "PRESETS", ())),
        functions=tuple(member.__name__ for member in members(module) if inspect.isfunction(member)),
        vectors=case_ids(name),
    )


def systems():
    """All systems, as a list of `System`: family by family, those with more presets first.

    >>> [each.name for each in systems() if each.family == "rotary"][0]
    'rotary.rope'
    """
    return sorted(map(system, names()), key=lambda each: ([*FAMILIES].index(each.family), -len(each.presets)))


def resolve(name):
    """The full name for a full or short name; LookupError with suggestions if no system or several systems match.

    >>> resolve("rope"), resolve("attention")
    ('rotary.rope', 'attention')
    """
    known = [*names(), *COMMON]
    wanted = name.lower().replace("-", "_").removeprefix("posref.")
    found = [full for full in known if wanted in (full, full.split(".")[-1])]
    if len(found) == 1:
        return found[0]
    if found:
        raise LookupError(f"{name!r} is the name of several systems; say {' or '.join(found)}")
    short = {full.split(".")[-1]: full for full in known}
    near = [short[match] for match in difflib.get_close_matches(wanted.split(".")[-1], short, n=2, cutoff=0.5)]
    hint = f"did you mean {' or '.join(near)}?" if near else "`posref list` prints all systems"
    raise LookupError(f"there is no system {name!r}; {hint}")


def page(name):
    """The parsed docstring of a module: a `posref._pages.Page`.

    >>> page("rotary.rope").differ[0].who
    'RoFormer, the paper'
    """
    return pages.page(inspect.getdoc(importlib.import_module(f"posref.{name}")) or "")


def members(module):
    """Public functions and classes that the module itself defines, in the order of the file."""
    return [
        member
        for name, member in vars(module).items()
        if (inspect.isfunction(member) or inspect.isclass(member))
        and member.__module__ == module.__name__
        and not name.startswith("_")
    ]


def function(name):
    """The public function that "t5.bucket" or "relative.t5.bucket" names; None if the name is no function of a system.

    ValueError if its first part names a system and its last part no function there.

    >>> function("t5.bucket").__name__, function("t5")
    ('bucket', None)
    """
    system, _, own = name.replace("-", "_").removeprefix("posref.").rpartition(".")
    try:
        module = importlib.import_module(f"posref.{resolve(system)}")
    except LookupError:
        return None
    found = [f for f in members(module) if hasattr(f, "contract")]
    if not hasattr(module, own):
        names = [f.__name__ for f in found]
        near = difflib.get_close_matches(own, names, n=1)
        last = module.__name__.split(".")[-1]
        if last in vectors.names() and f"op {own}" in vectors.load(last).conventions:
            asked = f"{last}.{own}"
            words = "is an op of `posref check` and no public function"
            raise ValueError(f"{asked} {words}; `posref check --as {asked} --contract` prints its arrays and its result")
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}"
        raise ValueError(f"{module.__name__.removeprefix('posref.')} has no {own!r}; {hint}")
    return next((f for f in found if f.__name__ == own), None)


def contract_lines(function):
    """The arguments of a function, one per line: axes and kind, as its contract checks them, and the default.

    >>> print(contract_lines(function("t5.bucket")))
    relative.t5.bucket
    <BLANKLINE>
        offsets        (...), signed integers
        buckets        an integer, 32 by default
        max_distance   an integer, 128 by default
        bidirectional  True or False
    """
    made = function.contract
    width = max(map(len, made.arguments), default=0)
    return "\n".join([f"{made.function}\n", *(f"    {n:{width}}  {a.said}" for n, a in made.arguments.items())])


def case_ids(name):
    """The ids of the golden vectors of a system, which begin with its short name; empty if it has none."""
    short = name.split(".")[-1]
    return tuple(case.id for case in vectors.load(short).cases) if short in vectors.names() else ()


def papers(references):
    """The links of a References section as Markdown, without repetition: arXiv numbers and kexue.fm articles.

    >>> papers("Su et al., RoFormer, arXiv 2104.09864, Eq. (15); Su, kexue.fm/archives/8265.")
    '[2104.09864](https://arxiv.org/abs/2104.09864), [kexue 8265](https://kexue.fm/archives/8265)'
    """
    references = references.partition("Not here:")[0]
    links = [f"[{number}](https://arxiv.org/abs/{number})" for number in re.findall(r"\b(\d{4}\.\d{4,5})\b", references)]
    links += [f"[kexue {n}](https://kexue.fm/archives/{n})" for n in re.findall(r"kexue\.fm/archives/(\d+)", references)]
    return ", ".join(dict.fromkeys(links)) or " ".join(references.split(";")[0].split()).rstrip(".")


def table():
    """All systems as a Markdown table, one row each; docs/systems.md holds it."""
    rows = [("System", "What it is", "Paper", "Presets", "Vectors", "Theorems"), ("---", "---", "---", "---", "--:", "--:")]
    for each in systems():
        models = [f"`{preset}`" for preset in each.presets if preset in uses()]
        own = [f"`{preset}`" for preset in each.presets[len(models) :]]
        presets = ", ".join([*(models if len(models) < MANY else [f"{len(models)} models"]), *own]) or "-"
        counts = str(len(each.vectors)), str(sum(s.is_theorem for s in statements.about(each.name)))
        rows.append((f"`{each.name}`", each.title.rstrip("."), papers(each.references), presets, *counts))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
