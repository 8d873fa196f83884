"""Honest sizes: what `sizes=` and the sentence of a theorem say, compared with what ran.

* "all n, d" has as many symbolic sizes, or integers from 0 on, as it names, in `sizes=` and in the sentence; "all positions"
  has a symbol. What holds from 0 on has a size from 0 on, and what "hence" holds for all has `argument=`.
* If some claims have a size, each has one, or `sizes=` has a clause that says for which numbers it is made.
* An even size is said to be even: a symbol that only occurs doubled stands for no size.
* An argument of a call has been a symbol if the sentence or `sizes=` says "all", "any" or "every" before its name.
* Its entries have not been equal or numbers throughout, and a mask has been more than one. The name is also that in a call of
  the sentence, f(y); "all vectors" and the like speak of all arguments.
* It has been a symbol of any sign, and not one for whole numbers, unless its contract takes no others, or the words are
  "every positive eps"; positions and offsets are whole numbers.
* Where no obligation is more than 0 = 0, `as_written=` says why: the code is the formula, or two runs of the code agree.
* A theorem whose calls get numbers alone is an example, unless `argument=` says what they stand for; an example names the
  numbers with which it ends.
* A hypothesis is in the sentence, unless its opposite is assumed too, or it says that a cell which is read is there.
* Claims are called by their own names, on each path of a loop over all.
* A theorem that runs turns of a loop one by one says in `argument=` what carries all of them, and covers the function.
* The expected value of a theorem that pins a function calls that function only if the sentence names it.
* A sentence that names a function by a name of several words, as row_maximum, has this function in `of`.
* A call has passed an option whose name has several words, or that the sentence says is any. "With or without" has run both.
* "Every mask" has a row without a key, or the sentence says "with a key".
* A theorem that pins a function with one mask says so. One that speaks of every entry compares all of some result.
* That an expression is not 0 everywhere does not say that it is never 0: a theorem claims `not is_zero` if its sentence says
  "as a function of" or "in general".

The other rules are not for examples.
"""

import ast
import builtins
import functools
import inspect
import re
import sys
import textwrap

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from proofs.kit import cases, claims, loops
from proofs.kit.mutants import python_function
from proofs.kit.record import RECORD

QUANTIFIER = r"\b(?:all|any|every|arbitrary|whatever|each(?= [nmdh]\b))\b (?:numbers? of |integer |other )?"
SIZES = """n m d h e c k K d_v d_p mem memories heads batches groups rotary_dim rows widths outputs d_model d_head axes
    lanes tiles panels keys queries columns features lengths tokens dimensions"""
COUNTS = "two|three|four|five|six|seven|eight|nine|ten"
EITHER = "all|any|every|each|both|either|whichever|whatever"
COUNTED = rf"\d|\b({COUNTS})\b"
WHOLE = r"\b(every|each|all|any) (entry|entries|cells?|outputs?|elements?)\b|\beverywhere\b"
EVERY_MASK = (
    r"\b(every|all|any|each|whatever|arbitrary) ([a-z]+ ){0,2}masks?\b|\bwhatever is masked\b|\b(any|all) sets? of keys\b"
)
WITH_A_KEY = (
    r"\b(with|has|have|leaves?|keeps?|sees?) (at least )?(a|one|some|each query a) (key|token)|\bnot empty\b|\bno empty row"
)
INPUTS = QUANTIFIER + r"(inputs?|values?|vectors?|entries|arguments?|arrays?|matrix|matrices)\b"
PLACES = {"position", "offset"}  # which are whole numbers as they are
CLAIMS = ("all_paths", "premise", "prove_equal", "prove_that", "prove_kernel", "prove_induction", "solve_forall", "covers")
WRITING = {"append", "extend", "add", "update", "turn", "turns", "before", "after", "py_func"}  # methods that are statements
KEEPING = {"append", "extend", "insert", "add", "update", "setdefault"}  # methods by which an object keeps something
UNREADABLE = {"eval", "exec", "compile", "globals", "locals", "__import__"}
INTERNALS = ("proofs.kit", "sys", "gc", "inspect", "importlib", "builtins", "unittest", "ctypes")  # modules, for no body
INTERNALS += ("_thread", "threading", "concurrent", "multiprocessing", "asyncio")  # what runs there nobody watches
SPECIAL = {"special": "entries that are equal, or numbers", "one mask": "one mask alone"}
AS_WRITTEN = {
    "formula": "the code computes the formula as it is written",
    "runs": "two runs of the code return the same expressions",
    "kernel": "the kernel writes what the specification returns, cell by cell",
}


def check(t):
    """What a theorem says and did not run, in words; it has just been proved."""
    written = _copied(t) or _void(t) or _premises(t) or _paths(t) or _left_out(t) or _never_zero(t)
    if t.is_example:
        return written or _ends(t.sizes) or _for_all(t.statement)
    return written or _sizes(t) or _bare(t) or _least(t) or _trivial(t) or _expected(t) or _nowhere() or _unsaid(t) or _turns(t)


def _copied(t):
    """A function that says it is of a module, and is not that of the module."""
    for f in map(python_function, t.of):
        known = getattr(sys.modules[f.__module__], f.__name__, f)
        if python_function(known) is not f:
            return f"is about a copy of {f.__module__}.{f.__name__}"
    return ""


def _left_out(t):
    """A function that the sentence names by a name of several words, and that `of` does not name."""
    under = [*map(python_function, t.of)]
    modules = [sys.modules[name] for name in dict.fromkeys(f.__module__ for f in under)]
    named = [(name, f) for m in modules if ".fast." not in m.__name__ for name, f in vars(m).items() if "_" in name.strip("_")]
    others = {name for name, f in named if inspect.isfunction(f) and f.__module__ in {m.__name__ for m in modules}}
    others -= {f.__name__ for f in under}
    left = sorted(name for name in others if re.search(rf"\b{name}\b", t.statement))
    return f"speaks of {left[0]}, which `of` does not name" if left else ""


def _never_zero(t):
    """A claim that an expression is not 0 everywhere, in a sentence that does not say so."""
    if re.search(r"\bas a function of\b|\bin general\b", t.statement):
        return ""
    for function in helpers(t.body):
        for node in nodes(function):
            claimed = node.args[0] if isinstance(node, ast.Call) and ast.unparse(node.func) == "prove_that" else None
            words = ast.unparse(claimed) if isinstance(claimed, ast.UnaryOp) and isinstance(claimed.op, ast.Not) else ""
            if "is_zero(" in words:
                return f"claims {words}, which is so where it is not 0 everywhere; say 'in general', or give numbers"
    return ""


def _void(t):
    """What shows nothing: a result that is left lying, and an expression that is compared with itself."""
    if inspect.signature(t.body).parameters:
        return "takes arguments; a theorem is run without any"
    for function in helpers(t.body):
        for node in nodes(function):
            if isinstance(node, ast.Expr) and _lies(node.value, function):
                return f"ignores what {ast.unparse(node.value)} returns; compare it"
            if isinstance(node, ast.Call) and (word := _unreadable(node)):
                return f"calls {word}; write it so that its text says what runs"
            if isinstance(node, ast.Break):
                return f"leaves a loop in line {node.lineno} of {function.__name__} early; go through all, or loop over less"
            if word := _reaches_into(node, function):
                return f"reaches into what judges it, by {word}; leave that out"
            if isinstance(node, ast.Call) and re.search(r"\b(all|is)close$", ast.unparse(node.func)) and not bounded(t):
                return (
                    f"calls {ast.unparse(node.func)}, which accepts nearby numbers; compare exactly, or say within which bound"
                )
            *_, left, right = ["", *map(ast.unparse, _compared(node))] if _compared(node) else ["", "", "right"]
            if left == right:
                return f"compares {left} with itself; compare it with what is expected"
    return ""


def bounded(t):
    """Whether the sentence says by how much a result may be off."""
    return bool(re.search(r"\bwithin \d", t.statement))


def _premises(t):
    """A premise that computes nothing, or that speaks of a function of the theorem, in words."""
    for node in (node for function in helpers(t.body) for node in nodes(function) if isinstance(node, ast.Call)):
        if ast.unparse(node.func) == "premise" and not any(isinstance(part, ast.Name) for part in ast.walk(node.args[0])):
            return f"has the premise {ast.unparse(node.args[0])}, of which nothing is computed"
    names = [python_function(f).__name__ for f in t.of]
    named = "|".join(rf"\b{name}\b" if "_" in name else rf"\b{name}\(" for name in names)
    said = [words for words in RECORD.premises if names and re.search(named, words)]
    return f"has a premise about what it proves: {said[0]}; claim it of a result" if said else ""


def _lies(node, function):
    """Whether a statement leaves a value lying: it is no claim, and calls nothing that claims or writes."""
    if not isinstance(node, ast.Call):
        return not isinstance(node, (ast.Constant, ast.Yield, ast.YieldFrom))
    if isinstance(node.func, ast.Call) or any(keyword.arg == "out" for keyword in node.keywords):
        return False  # `source(kernel)(..)`
    if (value := _value(node.func, function)) is None:
        return node.func.attr not in WRITING if isinstance(node.func, ast.Attribute) else hasattr(builtins, node.func.id)
    return value.__name__ not in CLAIMS and not (inspect.isfunction(python_function(value)) and _writes(value))


def _unreadable(node):
    """A call whose text does not say what runs or how long it runs, as text; "" for others."""
    name, keywords = ast.unparse(node.func), [keyword.arg for keyword in node.keywords]
    if name == "zip":
        return "zip without strict=True" * ("strict" not in keywords)
    if name in ("getattr", "setattr"):
        return f"{name} with a computed name" * (not isinstance(node.args[1], ast.Constant))
    return name * (name in UNREADABLE)


def _reaches_into(node, function):
    """The text of a node that may change the kit or a running function: an import in a body, a change of an object outside of
    the body, a module of the kit; "" for other nodes."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Global)):
        return ast.unparse(node)
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        owner = re.match(r"\w*", words := ast.unparse(node)).group()
        return words * (owner in function.__globals__.keys() - {*function.__code__.co_varnames, *function.__code__.co_cellvars})
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in KEEPING:
        kept = isinstance(function.__globals__.get(node.value.id), (dict, list, set))
        return ast.unparse(node) * (kept and node.value.id not in function.__code__.co_varnames)
    if not isinstance(node, ast.Name):
        return ""
    value = function.__globals__.get(node.id)
    inside = inspect.ismodule(value) and value.__name__.startswith(INTERNALS)
    return node.id * (inside or value is RECORD or node.id in ("setattr", "delattr"))


def _writes(function):
    """Whether a function writes what it makes into its arguments, as kernels do."""
    return not any(isinstance(node, ast.Return) and node.value for node in nodes(python_function(function)))


def _compared(node):
    """The arguments of prove_equal, also where they are those of `entries`."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "prove_equal"):
        return []
    return getattr(node.args[0].value, "args", []) if isinstance(node.args[0], ast.Starred) else node.args


def _ends(said):
    """An example goes through all of what has an end in numbers."""
    endless = [clause for clause, _ in _quantified(said) if not re.search(COUNTED, clause)]
    return f"is an example and says {endless[0]!r}; name the numbers that ran" if endless else ""


def _for_all(said):
    """An example speaks of no size, or has numbers."""
    endless = [clause for clause, _ in _of_letters(said) if not re.search(COUNTED, clause)]
    return f"is an example and says {endless[0]!r}; name the numbers that ran" if endless else ""


def _least(t):
    """What holds from 0 on, or is said to follow, has a size from 0 on, or an argument."""
    for s in RECORD.sizes:
        if s.is_positive and re.search(rf"\b{s} >= 0", f"{t.sizes} {t.statement}"):
            return f"says {s} >= 0, and runs {s} >= 1; make it by size(.., least=0)"
    for clause in t.sizes.split(";"):
        before, hence, after = clause.partition("hence ")
        if re.match(QUANTIFIER, after) and not re.search(QUANTIFIER, before) and not t.argument:
            return f"says {hence + after!r} and does not say why; pass argument="
    return ""


def _unsaid(t):
    """A hypothesis that the sentence does not say, and whose opposite is not assumed too."""
    for relation in (known for known in RECORD.hypotheses.values() if known is not None):
        known = str(relation.negated) in RECORD.hypotheses or _by_making(relation) or _is_place(relation)
        if relation.free_symbols and not (known or _told(relation, f"{t.statement} {t.sizes}")):
            return f"assumes {relation}, which its sentence does not say"
    return ""


def _told(relation, said):
    """Whether a sentence compares each name of a relation, and one of them with each of its numbers, but for 1."""
    functions = {f.func.__name__ for f in relation.atoms(AppliedUndef)}
    names = sorted({s.name for s in relation.free_symbols - cases._bounds.keys()} | functions)
    compared = (rf"(?<![\w.]){name} ?[<>]|[<>]=? ?(\w+ \+ )*{name}\b|\bpositive {name}\b" for name in map(re.escape, names))
    numbers = (abs(number) for number in relation.atoms(sp.Integer) if abs(number) > 1)
    with_numbers = (rf"\b({'|'.join(names)}) ?[<>]=? ?-?{number}\b" for number in numbers)
    return bool(names) and all(re.search(words, said) for words in (*compared, *with_numbers))


def _is_place(relation):
    """Whether a relation, not one of sizes alone, says that a cell which is read is there."""
    places = {sp.expand(e) for i, length in RECORD.cells for e in (i, length - 1 - i)}
    return not relation.free_symbols <= cases._sizes and any(facts <= places for facts in RECORD.in_cases[str(relation)])


def _by_making(relation):
    """Whether a relation holds for all that its symbols are made to be."""
    quotients = (sp.fraction(sp.together(e)) for e in cases.consequences(relation))
    return all(divisor.is_positive and cases.nonnegative(e) for e, divisor in quotients)


def _turns(t):
    """Turns of a loop that run one by one: that they make the whole loop is no step of the machine's."""
    if RECORD.loops and not t.argument:
        return "runs single turns of a loop, and does not say what carries all of them; pass argument="
    left = loops.not_covered()
    return f"runs turns of {left[0]}; call covers({left[0]})" if left else ""


def _nowhere():
    """Hypotheses for which no numbers are found, from which everything would follow."""
    for facts in {tuple(facts) for facts in RECORD.together}:
        zero = {f: sp.Integer(0) for f in facts if -f in facts and isinstance(f, (sp.Symbol, AppliedUndef, sp.Indexed))}
        facts = [fact.xreplace(zero) for fact in facts]
        if claims.point_of(facts) is None:
            return f"assumes what holds for no numbers that were tried: {', '.join(f'{fact} >= 0' for fact in facts)}"
    return ""


def _paths(t):
    """A loop over all paths that leaves some out, or a claim under another name, so that nobody sees such a loop."""
    for function in helpers(t.body):
        called = {id(node.func) for node in nodes(function) if isinstance(node, ast.Call)}
        for node in nodes(function):
            name = node.attr if isinstance(node, ast.Attribute) else _global_name(node, function)
            if name in CLAIMS and (isinstance(node, ast.Attribute) or id(node) not in called or node.id != name):
                return f"writes {ast.unparse(node)} for {name}; call {name} by its name"
            kept = isinstance(node, ast.For) and all(isinstance(statement, ast.Assign) for statement in node.body)
            if kept and ast.unparse(node.iter).startswith("all_paths("):
                return f"claims nothing on the paths of {ast.unparse(node.iter)}; compare on each of them"
            if isinstance(node, ast.Subscript) and "all_paths(" in ast.unparse(node.value):
                return f"takes some of the paths in {ast.unparse(node)}; write a loop over all"
        iterated = {id(node.iter) for node in nodes(function) if isinstance(node, (ast.For, ast.comprehension))}
        assigned = [node for node in nodes(function) if isinstance(node, ast.Assign)]
        only_one = {id(node.value) for node in assigned if _one_element(node.targets[0])}
        for node in nodes(function):
            called = isinstance(node, ast.Call) and ast.unparse(node.func) == "all_paths"
            if called and id(node) not in iterated | only_one:
                return f"does not go through all of {ast.unparse(node)}; write a loop over it"
    if RECORD.silent:
        return f"claims nothing on {RECORD.silent[0]} paths; compare on each of them, in the loop over all_paths"
    return ""


def _global_name(node, function):
    """The own name of the function that a name stands for."""
    return getattr(function.__globals__.get(getattr(node, "id", "")), "__name__", "")


def _one_element(target):
    return isinstance(target, ast.Tuple) and len(target.elts) == 1 and not isinstance(target.elts[0], ast.Starred)


def helpers(body):
    """The function of a proof and those of its file that it names, and they."""
    found = [body]
    for function in found:
        own = {*function.__code__.co_varnames, *function.__code__.co_cellvars, ""}
        values = (function.__globals__.get(word) for word in sorted(names_in(function) - own))
        found += [f for f in values if inspect.isfunction(f) and f.__module__ == body.__module__ and f not in found]
    return found


def signs():
    """What symbols are by their making, as hypotheses: positive or not negative; of sizes and indices it is said elsewhere."""
    free = _free() - cases._sizes - cases._bounds.keys()
    known = {s: "> 0" if s.is_positive else ">= 0" for s in free if s.is_Symbol and s.is_nonnegative and "#" not in s.name}
    return [f"{s} {sign}" for s, sign in sorted(known.items(), key=str)]


def _sides():
    """The expressions of all equalities, each once."""
    return {e for pair in RECORD.equalities for e in pair}


def _free():
    return set().union(*map(cases.free_symbols, _sides()))


def reason(t):
    """Why a theorem has no obligation that is more than 0 = 0; one that pins a function says that the code is the formula."""
    given = t.as_written or ("formula" if "pinned" in t.body.__name__ else "")
    return AS_WRITTEN.get(given, given)


def only_trivial():
    return RECORD.obligations == RECORD.trivial


def _sizes(t):
    """Quantified sizes that nothing symbolic stands for."""
    free = _free() | RECORD.asked
    functions = any(e.has(AppliedUndef, sp.Indexed) for e in _sides())
    whole = {s.name for s in free if s.is_integer and s.is_nonnegative and "#" not in s.name} | {s.name for s in RECORD.sizes}
    ran = whole | {s.name for s in free}
    for clause, items in [*_quantified(t.sizes), *_of_letters(t.statement)]:
        named = _of_sizes(items)
        if len(named - ran) > len(whole - named) and not RECORD.loops:
            return f"says {clause!r}, and runs {', '.join(sorted(ran)) or 'no symbol'}"
        if not (ran or functions):
            return f"says {clause!r}, and runs numbers alone"
    return ""


def _bare(t):
    """A claim without a size beside claims with one, where all that `sizes=` says is all sizes."""
    if RECORD.bare and RECORD.sizes and not RECORD.loops and all(map(sizes_said, t.sizes.split(";"))):
        return f"says {t.sizes!r}, and its claim {RECORD.bare[0]} has no size; say for which numbers, as in 'all n; d = 2'"
    return ""


def _of_sizes(items):
    """The words for sizes that the items of a list are, or end with."""
    ends = {item.split()[-1] for item in items if re.fullmatch(r"[a-z ]*[a-z]{2,}", item)} | {*items}
    return {word for word in ends if {word, f"{word}s"} & {*SIZES.split()}}


def sizes_said(said):
    """The words for sizes of which a text says all."""
    return set().union(*(_of_sizes(items) for _, items in _quantified(said)))


def _quantified(said):
    """The clauses that begin with all, any or every, each with the words of its list; what follows hence is no clause."""
    for clause in (part.split("hence ")[0].strip() for part in said.split(";")):
        if found := re.search(QUANTIFIER, clause):
            yield clause, re.split(r", | and ", re.split(r", one |: ", clause[found.end() :])[0])


def _of_letters(said):
    """The clauses of a sentence that speak of all sizes of one letter, each with these letters."""
    for clause, items in _quantified(re.sub(r"[.:,]? (?=for )|[.:] ", ";", said.rstrip("."))):
        if letters := [word for word in _of_sizes({item.rstrip(".,") for item in items}) if len(word) == 1]:
            yield clause, letters


def _trivial(t):
    if only_trivial() and not reason(t):
        return "has no obligation that is more than 0 = 0 and does not say why; pass as_written="
    if not only_trivial() and t.as_written:
        return "has an obligation that is more than 0 = 0; leave out as_written="
    return ""


def elsewhere(t, symbols, plain):
    """Quantified sizes that run, and of which no argument of a call is made, in words; what runs as 2h is an even size."""
    names = {s.name.rstrip("'") for s in symbols}
    whole = {s.name.rstrip("'") for s in plain if s.is_integer and "#" not in s.name}
    for clause, items in _quantified(t.sizes) if symbols and not t.is_example else ():
        named = _of_sizes(items)
        if len(named - names) > len(whole - named):
            return f"says {clause!r}, and calls its functions with {', '.join(sorted(whole)) or 'sizes that are numbers'} alone"
    return ""


def unlike_any(t, arguments):
    """Arguments that the theorem says are any, and that were numbers, or symbols of one sign, in all calls, in words.

    `arguments` has for each pair of a function and an argument what it was, as `numbers._arguments` says it.
    """
    if t.is_example or re.search(r"\bwitness(es)?\b|\bone example of\b", t.sizes):
        return ""
    said_of = f"{t.statement} {t.sizes}"
    listed = {item for _, items in _quantified(t.sizes) for item in items}
    letters = _letters_of(t)
    for function in {function for function, _ in arguments} if re.search(INPUTS, said_of) else ():
        was = {kind for (other, _), kind in arguments.items() if other == function} - {"masks", "one mask"}
        if "special" in was and was <= {"special", "numbers"}:
            return f"says {re.search(INPUTS, said_of).group()!r}, and {function} gets {SPECIAL['special']}"
    for (function, name), was in arguments.items():
        word = letters.get((function, name), name.removeprefix("query_").removeprefix("key_").removesuffix("s"))
        said = {word, f"{word}s"} & listed or re.search(rf"{QUANTIFIER}{word}s?\b", t.statement)
        if said and was == "numbers":
            return f"says any {word}, and {function}({name}=..) gets numbers alone"
        if said and was in ("special", "one mask"):
            return f"says any {word}, and {function}({name}=..) gets {SPECIAL[was]}"
        if said and was == "one sign":
            return f"says any {word}, and {function}({name}=..) gets symbols of one sign; say positive {word}"
        if said and was == "whole numbers" and word not in PLACES:
            return f"says any {word}, and {function}({name}=..) gets whole numbers alone; say whole {word}"
        if was == "one mask" and name == "mask" and pins(t) and not re.search(r"\b(one|causal) mask\b", said_of):
            return f"pins {function} with one mask; run another one, or say 'one mask'"
    if {*arguments.values()} - {"masks", "one mask"} == {"numbers"} and not t.argument:
        return "calls its functions with numbers alone; make it an @example, or pass symbols"
    return ""


def _letters_of(t):
    """What the sentence calls an argument, where it writes a call such as f(y, z) and speaks of every y."""
    names = {f.__name__: [*inspect.signature(f).parameters] for f in map(python_function, t.of)}
    calls = [(f, given.split(", ")) for f, given in re.findall(r"\b(\w+)\(([^()]*)\)", t.statement) if f in names]
    letters = {(f, name): word for f, given in calls for name, word in zip(names[f], given, strict=False)}
    return {
        key: word for key, word in letters.items() if re.search(rf"{QUANTIFIER}{re.escape(word)}\b", f"{t.statement} {t.sizes}")
    }


def speaks_of_both(t, function, one, other):
    """Whether a sentence says "all" of both arguments, or writes a call f(y, z) with a different word for each."""
    first, second = (rf"\b{name}\b" for name in (one, other))
    if re.search(rf"{QUANTIFIER}[^.;:]*({first}[^.;:]*{second}|{second}[^.;:]*{first})", t.statement):
        return True
    places = [*inspect.signature(function).parameters]
    calls = re.findall(rf"\b{function.__name__}\(([^()]*)\)", t.statement)
    given = [dict(zip(places, re.split(", ?", call), strict=False)) for call in calls]
    words = [(call.get(one, ""), call.get(other, "")) for call in given]
    return any(a != b and a.isidentifier() and b.isidentifier() for a, b in words)


def words_left_out(t, words):
    """Words of an argument that did not run, although the theorem speaks of all of them."""
    for (function, name), (taken, ran) in words.items():
        left = [word for word in taken if isinstance(word, str) and word not in ran]
        if left and re.search(rf"\b({EITHER}) (?:the |(?:{COUNTS}) )?{name}s?\b", f"{t.sizes} {t.statement}"):
            return f"says every {name}, and calls {function} without {name}={left[0]!r}"
    return ""


def options_left_out(t, calls):
    """An option that the theorem speaks of and that no call passes, or "with or without" one of which has run, in words."""
    said, passed = f"{t.statement} {t.sizes}", {}
    for call in calls:
        for name, value in call.arguments.items():
            passed.setdefault(name, set()).add(value if isinstance(value, (bool, type(None))) else "some")
    for f in map(python_function, t.of):
        for name, default in ((p.name, p.default) for p in inspect.signature(f).parameters.values()):
            ran = passed.get(name, set())
            both = rf"\b(with(out)?|whether) {name}( or not| or with)|\bwith {name} (or|and) without"
            any_ = rf"{QUANTIFIER}{name}s?\b" + rf"|\b{name}\b" * ("_" in name)
            if ran == {None} and (re.search(any_, said) or re.search(both, said)):
                return f"speaks of {name}, and no call passes it"
            if isinstance(default, bool) and len(ran) < 2 and re.search(rf"{both}|\b{name} or not\b", said):
                return f"speaks of {name} or not, and calls with {name}={[*ran]} alone"
    return _with_a_key_each(said, calls)


def _with_a_key_each(said, calls):
    """A sentence about every mask, where some mask never had a row without a key, in words."""
    every, masks = re.search(EVERY_MASK, said), {}
    for call in calls if every and not re.search(WITH_A_KEY, said) else ():
        for name, value in call.arguments.items():
            is_mask = type(value) is np.ndarray and value.dtype == bool and value.ndim
            if is_mask or ("mask" in name and value is not None):
                empty = is_mask and not value.any(axis=-1).all()
                masks[call.function, name] = masks.get((call.function, name), False) or empty
    for function, name in (key for key, empty in masks.items() if not empty):
        call = f"{python_function(function).__name__}({name}=..)"
        return f"says {every.group()!r}, and {call} gets no row without a key; run one, or say 'with a key'"
    return ""


# the expected value


def of_whole_results(t):
    """Whether a theorem has to compare all cells of some result: it pins a function, or speaks of every entry."""
    return pins(t) or bool(re.search(WHOLE, t.statement))


def pins(t):
    """Whether a theorem says what a function computes, so that the function may not compute what is expected of it."""
    return "pinned" in t.body.__name__ or t.as_written == "formula"


def says_what(t, function):
    """Whether a theorem says what a function returns: it pins the function, or "is" or = is behind its name, or behind "It"."""
    return pins(t) or bool(re.search(rf"^It is |\b{function.__name__}\b(\([^()]*\))? (is|are|=|returns|gives) ", t.statement))


def _expected(t):
    """A value that is expected of a function, and comes from that function."""
    if not pins(t):
        return ""
    under = {python_function(f) for f in t.of}
    runs = {}  # local name -> the function under proof that gives its value
    for name, value in (pair for node in nodes(t.body) for pair in _named(node)):
        if found := _run(value, t.body, under, runs):
            runs[name] = found
    for node in nodes(t.body):
        if pair := _compared(node):
            found = _run(pair[-1], t.body, under, runs)
            if found and not re.search(rf"\b{found}\b", t.statement):
                return f"expects {ast.unparse(pair[-1])}, which {found} computes, and its sentence does not name {found}"
    return ""


def _named(node):
    """The names that an assignment or a loop over paths binds, each with its value."""
    if isinstance(node, (ast.For, ast.comprehension)) and ast.unparse(node.iter).startswith("all_paths(lambda"):
        target, value = getattr(node.target, "elts", [node.target])[-1], node.iter.args[0].body
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
        target, value = getattr(node, "target", None) or node.targets[0], node.value
    else:
        return
    for part, own in _one_by_one(target, value):
        yield from ((node.id, own) for node in ast.walk(part) if isinstance(node, ast.Name))


def _one_by_one(target, value):
    """The parts of an assignment of a tuple to a tuple, each with its value."""
    tuples = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    return zip(target.elts, value.elts, strict=True) if tuples else [(target, value)]


def of_numbers_alone(control):
    """A claim of a control that holds no name, so that nothing which was computed refutes it, as text; "" if there is none."""
    for node in nodes(control):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("prove_that", "prove_equal"):
            claimed = node.args[: 1 + (ast.unparse(node.func) == "prove_equal")]
            names = {part.id for each in claimed for part in ast.walk(each) if isinstance(part, ast.Name)}
            if all(any(control.__globals__.get(name) is module for module in (np, sp)) for name in names):
                return ast.unparse(node)
    return ""


def literal_witness(control):
    """A counterexample of a control of which nothing is computed, as text; "" if there is none."""
    given = (
        k.value
        for f in helpers(control)
        for node in nodes(f)
        if isinstance(node, ast.Call)
        for k in node.keywords
        if k.arg == "counterexample"
    )
    return next((ast.unparse(e) for e in given if not any(isinstance(part, ast.Name) for part in ast.walk(e))), "")


def _run(expression, function, under, runs, seen=()):
    """The name of a function under proof that an expression calls, itself or by a helper of the file."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id in runs:
            return runs[node.id]
        value = _value(node, function)
        if not callable(value) or isinstance(value, type):
            continue
        value = python_function(value)
        if value in under:
            return value.__name__
        helper = inspect.isfunction(value) and value.__module__ == function.__module__ and value not in seen
        if helper and (found := _run(tree(value), value, under, {}, (*seen, value))):
            return found
    return None


def _value(node, function):
    """What a name, or an attribute of a module, stands for."""
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, function)
        return getattr(owner, node.attr, None) if inspect.ismodule(owner) else None
    return (
        function.__globals__.get(node.id)
        if isinstance(node, ast.Name) and node.id not in function.__code__.co_varnames
        else None
    )


@functools.cache
def tree(function):
    """A function as it is written, without what decorates it."""
    root = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    root.decorator_list = []
    return root


@functools.cache
def nodes(function):
    """All nodes of the tree of a function."""
    return [*ast.walk(tree(function))]


@functools.cache
def names_in(function):
    """The names and attributes in a function."""
    return {getattr(node, "attr", getattr(node, "id", "")) for node in nodes(function)}
