"""Rules of the house, read from the source. Every rule is also fed a snippet that breaks it, so no rule is blind."""

import ast
import importlib
import inspect
import re
import subprocess
from pathlib import Path

import pytest

from posref import _pages, discovery, ops, statements
from posref.relative import alibi
from tests.every import every

ROOT = Path(__file__).resolve().parents[1]
SYSTEMS = discovery.names()
SPECIFICATIONS = [*SYSTEMS, *discovery.COMMON]
DOCUMENTED = [name for name in SPECIFICATIONS if name != "pairing"]  # which defines a word, not a system: no proof file
TWINS = [f"fast.{path.stem}" for path in sorted((ROOT / "posref" / "fast").glob("*.py"))]
MAX_LINES, MAX_STATEMENTS = 270, 25


def in_proofs(word):
    """What the proof files say under this name, with the file."""
    for path in sorted((ROOT / "proofs").rglob("*.py")):
        if f"\n{word} = {{" in (text := path.read_text(encoding="utf-8")):
            values = {ast.unparse(node.targets[0]): node.value for node in ast.parse(text).body if isinstance(node, ast.Assign)}
            yield ".".join(path.relative_to(ROOT / "proofs").with_suffix("").parts), ast.literal_eval(values[word])


def fixed_by_theorems(word):
    """Function -> the theorem that fixes what it does all the same: rounds, or branches on a number or a size."""
    return {f"{file}.{name}": f"{file}.{theorem}" for file, found in in_proofs(word) for name, theorem in found.items()}


BRANCHES_ON_SIZES, BRANCHES_ON_NUMBERS, ROUNDS = map(fixed_by_theorems, ("BRANCHES_ON_SIZES", "BRANCHES_ON_NUMBERS", "ROUNDS"))
# What an argument is that is not given, in every public function; each stands in the proof file of one system.
DEFAULTS = {name: default for _, found in in_proofs("DEFAULTS") for name, default in found.items()}

FORBIDDEN_ATTRIBUTES = {"real", "imag", "asarray", "empty_like", "inf", "infty", "NINF"}
FORBIDDEN_IMPORTS = {"math", "cmath", "warnings", "functools"}
NO_DEFAULT = {"layout", "convention"}
CASTS = {"int", "float", "bool", "hash", "str", "abs", "min", "max", "sorted", "isinstance", "type"}


def source(name):
    return (ROOT / "posref" / name.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")


def public_functions(tree):
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


# The rules: source -> list of complaints


def runs_on_symbols(text):
    """Nothing that strips symbols off an array, computes on floats alone, keeps state, or stops a wrong call softly."""
    for node in ast.walk(ast.parse(text)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Assert):
            yield f"line {line}: assert; raise ValueError"
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield f"line {line}: state outside the function"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imported = {node.module} if isinstance(node, ast.ImportFrom) else {name.name for name in node.names}
            for name in sorted(FORBIDDEN_IMPORTS & {(name or "").split(".")[0] for name in imported}):
                yield f"line {line}: imports {name}"
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_ATTRIBUTES:
            yield f"line {line}: .{node.attr}"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            displays = (ast.List, ast.Tuple, ast.ListComp)
            if called == "np.array" and not (node.args and isinstance(node.args[0], displays)):
                yield f"line {line}: np.array of something that is no list; it strips symbols, use the argument as it is"
            if called == "float" and node.args and isinstance(node.args[0], ast.Constant):
                yield f"line {line}: {ast.unparse(node)}"
            if called.startswith("warn"):
                yield f"line {line}: a warning; raise ValueError"


def exact_numbers(text):
    """No float literal in a body: 1 / 2 stays exact on symbols, 0.5 does not. Defaults and PRESETS are the caller's numbers."""
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef):
            for node in (node for statement in function.body for node in ast.walk(statement)):
                if isinstance(node, ast.Constant) and isinstance(node.value, float):
                    yield f"line {node.lineno}: {node.value}; write it as an integer or a quotient"


def doctested(text):
    """Every public function has a docstring with an example, and every public class a docstring."""
    tree = ast.parse(text)
    for function in public_functions(tree):
        if ">>>" not in (ast.get_docstring(function) or ""):
            yield f"{function.name} has no doctest"
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not ast.get_docstring(node):
            yield f"{node.name} has no docstring"


def in_the_grammar(text):
    """Title `Name: what it is.`, one sentence, the sections, each once and in order; formulas, symbols and rows can be read."""
    docstring = ast.get_docstring(ast.parse(text)) or ""
    page = _pages.page(docstring)
    if ": " not in page.title or not page.title.endswith(".") or "\n" in page.title:
        yield f"the title is {page.title!r}, expected one line `Name: what it is.`"
    if not page.motivation.endswith(".") or len(page.motivation) > 400:
        yield f"the motivation is {page.motivation!r}, expected one sentence after the title"
    head = page.sections["title"].split("\n\n")
    if len(head) > 3 or (len(head) == 3 and not re.fullmatch(r"Also called: [^.;]+\.", head[2])):
        yield f"after the motivation comes {head[2:]}, expected `Also called: a name, another.` or nothing"
    names = (*_pages.SECTIONS, _pages.EXAMPLE, "Properties")
    found = re.findall(rf"^({'|'.join(names)})\.(?:\s|$)", docstring, flags=re.MULTILINE)
    if found[3:4] == [_pages.EXAMPLE] and ">>>" in page.example:
        del found[3]
    if tuple(found) != _pages.SECTIONS:
        yield f"the sections are {found}, expected {list(_pages.SECTIONS)}"
    for what in ("formulas", "symbols", "differ"):
        if not getattr(page, what):
            yield f"no {what} can be read"
    yield from (f"{symbol.names!r} has no meaning, written after two blanks" for symbol in page.symbols if not symbol.meaning)
    differ = page.sections.get("Where implementations differ", "").split("\n")
    lines = [line for line in differ if re.match(r" {4}\S", line)]
    if lines and tuple(lines[0].strip().split(" | ")) != _pages.COLUMNS:
        yield f"the rows begin with {lines[0].strip()!r}, expected {' | '.join(_pages.COLUMNS)!r}"
    if len(lines) != len(page.differ) + 1:
        yield f"{len(lines) - 1} rows, of which {len(page.differ)} have the cells {' | '.join(_pages.COLUMNS)}"


def asks_no_size(text, module=""):
    """No function compares, hashes, casts or tests a size, a rank or a dtype: that is the business of its contract."""
    for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)):
        if f"{module}.{function.name}" in BRANCHES_ON_SIZES:
            continue
        sizes = {"size", "ndim", "dtype", "itemsize", "kind"}
        for _ in range(3):  # a name that is made from a size is one
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and _size(node.value, sizes):
                    sizes |= {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        for node in ast.walk(function):
            tested = []
            if isinstance(node, ast.Compare):
                tested = [each for each in (node.left, *node.comparators) if _size(each, sizes)]
            elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
                tested = [node.test] if _size(node.test, sizes) else []
            elif isinstance(node, ast.BoolOp):
                tested = [each for each in node.values if _size(each, sizes)]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in CASTS:
                tested = [each for each in node.args if _size(each, sizes)]
            elif isinstance(node, ast.Attribute) and node.attr in ("astype", "dtype", "itemsize", "kind"):
                tested = [node]
            elif isinstance(node, (ast.Dict, ast.Set)):
                tested = [
                    each for each in (getattr(node, "keys", None) or node.elts) if each is not None and _size(each, sizes)
                ]
            yield from (f"{function.name}, line {each.lineno}: {ast.unparse(each)}" for each in tested)


def _size(node, sizes):
    """Whether an expression is made from sizes: `x.shape[-1]`, `len(x)`, a name that was assigned one; not an array of them."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "ndim", "size", "dtype", "itemsize")
    if isinstance(node, ast.Name):
        return node.id in sizes
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        return called == "len" or (called in CASTS and any(_size(each, sizes) for each in node.args))
    if isinstance(node, ast.Subscript):
        return _size(node.value, sizes)
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.BoolOp, ast.Compare)):
        return any(_size(each, sizes) for each in ast.iter_child_nodes(node))
    return False


def no_other_numbers(text):
    """A body holds 0 to 3 and the numbers that its docstring says: no size that is special, no end of a range."""
    for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)):
        said = (ast.get_docstring(function) or "").partition(">>>")[0]
        allowed = {0, 1, 2, 3, *map(int, re.findall(r"(?<![\w.])\d+(?![\d.]\d)", said))}
        if not function.name.startswith(
            ("_require", "_exp_float", "_series")
        ):  # whose coefficients a test compares with the series
            for node in (node for statement in function.body for node in ast.walk(statement)):
                if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in allowed:
                    yield f"{function.name}, line {node.lineno}: {node.value}"


TYPES = re.compile(r"(float|u?int|complex|longlong|half|single|double|longdouble|short|byte|ubyte|intc|intp)\d*_?")
ROUNDING = re.compile(
    r"int|round|divmod|np\.(floor|ceil|rint|trunc|round|fix|around|mod|fmod|floor_divide|remainder|divmod|modf)"
)
MAKERS = re.compile(r"np\.(zeros|ones|full|empty|eye|zeros_like|ones_like|full_like)")


def only_formulas(text, module=""):
    """A body does not treat one size, one large value or one fraction otherwise, narrows nothing and writes to nothing given.

    So: it branches on words and on what is not given; it names no type, rounds nothing but whole numbers, and stores only into
    arrays that it made. Checks, which only raise, may ask anything.
    """
    for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)):
        name, nodes = f"{module}.{function.name}", [*_but_checks(function.body)]
        found = [*_stores(nodes), *_types(nodes)]
        if not function.name.startswith("_require"):
            found += [] if name in ROUNDS else _roundings(function, nodes)
            found += [] if name in {**BRANCHES_ON_SIZES, **BRANCHES_ON_NUMBERS} else _branches(function, nodes)
        yield from (f"{function.name}, line {node.lineno}: {ast.unparse(node)}" for node in found)


def _but_checks(statements):
    for statement in statements:
        if not (isinstance(statement, ast.If) and all(isinstance(each, ast.Raise) for each in statement.body)):
            yield statement
            yield from _but_checks(each for each in ast.iter_child_nodes(statement))


def _maker(node):
    return isinstance(node, ast.Call) and bool(MAKERS.fullmatch(ast.unparse(node.func)))


def _stores(nodes):
    """Writes, but into an array that the function made."""
    assigned = [(target, node.value) for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    made = {t.id for t, v in assigned if isinstance(t, ast.Name) and _maker(v)}
    made -= {t.id for t, v in assigned if isinstance(t, ast.Name) and not _maker(v)}
    for node in nodes:
        if isinstance(node, (ast.AugAssign, ast.Delete)) or (isinstance(node, ast.keyword) and node.arg == "out"):
            yield node
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield from [] if isinstance(node.value, ast.Name) and node.value.id in made else [node]


def _types(nodes):
    """Types of numbers, named or as text; the rule above knows `astype`."""
    for node in nodes:
        named = isinstance(node, ast.Attribute) and TYPES.fullmatch(node.attr) and ast.unparse(node) != "np.int64"
        if named or (isinstance(node, ast.keyword) and node.arg == "dtype" and ast.unparse(node.value) not in ("bool", "int")):
            yield node
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("np."):
            yield from (each for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str))


def _annotated(function, *words):
    """The arguments whose annotation has one of the words."""
    arguments = [a for a in (*function.args.args, *function.args.kwonlyargs) if a.annotation is not None]
    return {a.arg for a in arguments if any(word in ast.unparse(a.annotation) for word in words)}


def _roundings(function, nodes):
    """What cuts a fraction off, but where whole numbers are divided."""
    names = _annotated(function, "Even", "Count", "Integer", "Integers")
    for node in [node for node in nodes if isinstance(node, ast.Assign)] * 2:
        pairs = [(node.targets[0], node.value)]
        if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(node.targets[0].elts, node.value.elts, strict=True)
        names |= {t.id for target, value in pairs if _whole(value, names) for t in ast.walk(target) if isinstance(t, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            if not (_whole(node.left, names) and _whole(node.right, names)):
                yield node
        elif isinstance(node, ast.Call) and ROUNDING.fullmatch(ast.unparse(node.func)):
            yield from [] if all(_whole(each, names) for each in node.args) else [node]


def _whole(node, names):
    """Whether an expression is made from whole numbers."""
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, (ast.Div, ast.Pow)) and _whole(node.left, names) and _whole(node.right, names)
    if isinstance(node, ast.Call):
        reduced = isinstance(node.func, ast.Attribute) and node.func.attr == "sum" and _whole(node.func.value, names)
        counted = ast.unparse(node.func) == "np.arange" and all(_whole(each, names) for each in node.args)
        return reduced or counted or ast.unparse(node.func) == "len"
    if isinstance(node, (ast.Subscript, ast.UnaryOp)):
        return _whole(getattr(node, "value", None) or node.operand, names)
    if isinstance(node, ast.IfExp):
        return _whole(node.body, names) and _whole(node.orelse, names)
    plain = (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.Attribute) and node.attr == "shape")
    return plain or (isinstance(node, ast.Constant) and isinstance(node.value, int))


def _branches(function, nodes):
    """Tests of anything but words, `None` and switches, and comparisons of single numbers with one another."""
    switches = _annotated(function, "bool")
    numbers = _annotated(function, "Even", "Count", "Integer", "Number", "Positive", "Factor", "Fraction")
    numbers -= _annotated(function, "Array")
    for node in nodes:
        if isinstance(node, (ast.If, ast.IfExp, ast.While)) and not _of_words(node.test, switches):
            yield node.test
        elif isinstance(node, (ast.BoolOp, ast.Match)) or (isinstance(node, ast.comprehension) and node.ifs):
            if not _of_words(node, switches):
                yield node if isinstance(node, ast.expr) else function
        elif isinstance(node, ast.Compare) and not _of_words(node, switches):
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - {"np"}
            if names <= numbers:
                yield node


def _of_words(node, switches):
    if isinstance(node, ast.BoolOp):
        return all(_of_words(value, switches) for value in node.values)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) and _of_words(node.operand, switches)
    if isinstance(node, ast.Compare):
        words = [part for right in node.comparators for part in getattr(right, "elts", [right])]
        return all(isinstance(word, ast.Constant) and isinstance(word.value, (str, type(None))) for word in words)
    return isinstance(node, ast.Name) and node.id in switches


def short(text):
    """Code fits on a few screens, a function on one; a statement counts once however it is wrapped."""
    tree = ast.parse(text)
    beside = [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PRESETS"]
    beside += tree.body[:1] if ast.get_docstring(tree) else []  # the page and the facts are read elsewhere
    lines = text.count("\n") - sum(node.end_lineno - node.lineno + 1 for node in beside)
    if lines > MAX_LINES:
        yield f"{lines} lines, at most {MAX_LINES}"
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            statements = sum(isinstance(node, ast.stmt) for node in ast.walk(function)) - 1
            statements -= ast.get_docstring(function) is not None
            if statements > MAX_STATEMENTS:
                yield f"{function.name} has {statements} statements, at most {MAX_STATEMENTS}"


def no_default_where_the_world_disagrees(text):
    """`layout` and `convention` are chosen by the caller, by keyword."""
    for function in public_functions(ast.parse(text)):
        for argument in function.args.posonlyargs + function.args.args:
            if argument.arg in NO_DEFAULT:
                yield f"{function.name}: {argument.arg} must be keyword-only"
        for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
            if argument.arg in NO_DEFAULT and default is not None:
                yield f"{function.name}: {argument.arg} must have no default"


def defaults_as_published(text):
    """An argument that has a default has that of its name; `None` says that something is not there."""
    for function in public_functions(ast.parse(text)):
        arguments = function.args.args[len(function.args.args) - len(function.args.defaults) :] + function.args.kwonlyargs
        for argument, default in zip(arguments, function.args.defaults + function.args.kw_defaults, strict=True):
            known = repr(DEFAULTS.get(argument.arg))
            if default is not None and ast.unparse(default) != known:
                yield f"{function.name}: {argument.arg} = {ast.unparse(default)}, expected {known}"


def positions_are_arguments(text):
    """A function that is given positions counts none of its own from the shape of another argument."""
    for function in public_functions(ast.parse(text)):
        arguments = {argument.arg for argument in function.args.args + function.args.kwonlyargs}
        if arguments & {"positions", "query_positions", "key_positions"}:
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and re.match(r"np\.arange\(.*(\.shape\[-2\]|len\()", ast.unparse(node)):
                    yield f"{function.name}: {ast.unparse(node)}"


def proofs_exist(text):
    """Every proof file that a docstring names is there."""
    for path in sorted(set(re.findall(r"proofs/[\w/]+\.py", text))):
        if not (ROOT / path).is_file():
            yield f"{path} is named and does not exist"


def computes_no_wrong_answer(text, mistakes):
    """A generator knows mistakes by name alone, in what `kills` is given: it asks for none, and makes no answer of one."""
    for node in ast.walk(ast.parse(text)):
        words = []
        if isinstance(node, ast.Compare):
            words = [word for side in (node.left, *node.comparators) for word in getattr(side, "elts", [side])]
        elif isinstance(node, (ast.Dict, ast.Subscript)):
            words = node.keys if isinstance(node, ast.Dict) else [node.slice]
        found = {word.value for word in words if isinstance(word, ast.Constant)} & mistakes
        yield from (f"line {node.lineno}: {name} is written in posref/ops" for name in sorted(found))
        if isinstance(node, ast.keyword) and node.arg == "mistakes":
            yield f"line {node.lineno}: an answer beside those of posref/ops; name it in kills"


def clean_text(text):
    """Nothing left to do, and no path of one machine."""
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b", line):
            yield f"line {number}: something left to do"
        if re.search(r"(?<![\w./*-])/(home|Users|root|work|tmp|mnt|var|opt)/\w", line) or re.search(r"\b[A-Z]:\\\w", line):
            yield f"line {number}: a path of one machine"


# The rules hold, each in all files

OF_A_SOURCE = {
    runs_on_symbols: SPECIFICATIONS,
    exact_numbers: SPECIFICATIONS,
    doctested: SPECIFICATIONS,
    short: SPECIFICATIONS,
    positions_are_arguments: SPECIFICATIONS,
    no_default_where_the_world_disagrees: DOCUMENTED,
    in_the_grammar: DOCUMENTED,
    defaults_as_published: [*SPECIFICATIONS, *TWINS],
    no_other_numbers: [*SPECIFICATIONS, *TWINS],
}
OF_A_MODULE = {asks_no_size: SPECIFICATIONS, only_formulas: SPECIFICATIONS}


@pytest.mark.parametrize("rule", OF_A_SOURCE, ids=lambda rule: rule.__name__)
def test_source(rule):
    assert [f"{name}: {said}" for name in OF_A_SOURCE[rule] for said in rule(source(name))] == []


@pytest.mark.parametrize("rule", OF_A_MODULE, ids=lambda rule: rule.__name__)
def test_module(rule):
    assert [f"{name}: {said}" for name in OF_A_MODULE[rule] for said in rule(source(name), name)] == []


def test_exceptions_are_proved():
    named = {*BRANCHES_ON_SIZES.values(), *BRANCHES_ON_NUMBERS.values(), *ROUNDS.values()}
    assert named <= {theorem.partition("/")[0] for theorem in statements.statements()}
    assert len(DEFAULTS) == sum(len(found) for _, found in in_proofs("DEFAULTS")), "an argument has one default"


def wrong_answers(system):
    taken = {name for op in ops.system(system).values() for name in inspect.signature(op.spec).parameters} | {*alibi.FORMS}
    text = (ROOT / "proofs" / "vectors" / f"{system}.py").read_text(encoding="utf-8")
    mistakes = {name for op in ops.system(system).values() for name in op.mistakes} - taken
    yield from (f"{system}: {said}" for said in computes_no_wrong_answer(text, mistakes))


def test_generators_compute_no_wrong_answer():
    assert [said for system in ops.names() for said in wrong_answers(system)] == []


def shapes(page):
    """(name, axes) of every symbol with a shape, "q, k (..., n, d)" being two."""
    for symbol in page.symbols:
        for names, shape in re.findall(r"(\w+(?:, \w+)*) \(([^)]*)\)", symbol.names):
            yield from ((name, [axis.strip() for axis in shape.split(",") if axis.strip()]) for name in names.split(", "))


def fits(axes, argument, known):
    """Whether the axes of a symbol are those of a contract: from the back as many, the same numbers in them, and a name that
    the contract knows in its own place; a name that only the page has may stand for any extent."""
    wanted = str(argument.shape).strip("(,)").replace(" ", "").split(",")
    if len([axis for axis in axes if axis != "..."]) < argument.shape.least or (len(axes) > len(wanted) and wanted[0] != "..."):
        return False
    for own, theirs in zip(reversed(axes), reversed(wanted), strict=False):
        if "..." in (own, theirs):
            return True
        plain = re.sub(r"(\d)(?=[a-zA-Z])", r"\1*", own.replace(" ", ""))
        numbers = [re.sub(r"[a-z_A-Z]+", "n", text) for text in (plain, theirs)]
        if plain != theirs and (plain in known or not (plain.isidentifier() or numbers[0] == numbers[1])):
            return False
    return True


def extents(contract):
    shapes = [argument.shape for argument in contract.arguments.values() if argument.shape]
    return {name for shape in shapes for axis in shape.axes for term in axis.terms for name in term.names}


def other_symbols(name):
    """A symbol of the page that is the name of arguments has the axes of one of them."""
    functions = [f for f in discovery.members(importlib.import_module(f"posref.{name}")) if hasattr(f, "contract")]
    for symbol, axes in shapes(discovery.page(name)):
        made = [f.contract for f in functions if symbol in f.contract.arguments]
        made = [c for c in made if c.arguments[symbol].shape and not c.arguments[symbol].shape.like]
        if made and not any(fits(axes, c.arguments[symbol], extents(c)) for c in made):
            yield f"{name}: {symbol} {axes}"


def test_symbols_are_those_of_the_contracts():
    assert [said for name in SPECIFICATIONS for said in other_symbols(name)] == []


def test_symbols_that_are_not_those_of_the_contracts_are_noticed():
    argument = discovery.function("attention.scores").contract.arguments["q"]
    assert fits(["...", "h", "n_query", "d"], argument, {"n_query", "n_key", "d"})
    for axes in (["...", "d", "n_query"], ["d"], ["...", "n_query", "2*d"]):
        assert not fits(axes, argument, {"n_query", "n_key", "d"})


def test_public_functions_are_contracts():
    bare = []
    for name in SPECIFICATIONS:
        functions = [
            member for member in discovery.members(importlib.import_module(f"posref.{name}")) if inspect.isfunction(member)
        ]
        bare += [f"{name}.{function.__name__}" for function in functions if not hasattr(function, "contract")]
    assert [name for name in bare if name not in BRANCHES_ON_SIZES] == []


def test_every_specification_is_proved():
    missing = [name for name in DOCUMENTED if not (ROOT / "proofs" / name.replace(".", "/")).with_suffix(".py").is_file()]
    assert missing == [], f"no proof file for {', '.join(missing)}"


def test_a_system_has_a_worked_example():
    bare = [name for name in SYSTEMS if ">>>" not in discovery.page(name).example]
    assert bare == [], "`Example.` with a few tokens worked out, after `Conventions.`"


def missing(name):
    """The five steps of CONTRIBUTING.md: what a system lacks, the first step first."""
    family, system = name.split(".")
    files = [
        f"posref/ops/{system}.py",
        f"proofs/{family}/{system}.py",
        f"proofs/vectors/{system}.py",
        f"posref/vectors/{system}.json",
    ]
    absent = [path for path in files if not (ROOT / path).is_file()]
    yield from (f"{name} is not whole; next: {path}, see CONTRIBUTING.md" for path in absent[:1])
    if absent:
        return
    if '"status": "reject"' not in (ROOT / f"posref/vectors/{system}.json").read_text(encoding="ascii"):
        yield f"{name} refuses nothing: write a row of REJECTED in {files[2]}, and run python -m proofs.vectors {system}"
    if "\ndef _head(t):" not in (ROOT / files[0]).read_text(encoding="utf-8"):
        yield f"{files[0]} has no _head(t)"


def test_systems_are_whole():
    assert [said for name in SYSTEMS for said in missing(name)] == []


def declared(path):
    """Theorems and examples of a proof file, {name: sentence}, read from its source."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(
            ast.unparse(d).startswith(("theorem(", "example(")) for d in node.decorator_list
        ):
            yield node.name, " ".join((ast.get_docstring(node) or "").split())


def test_statements_travel():
    """posref/statements.json has the sentence of every theorem. tests/proofs/test_statements.py compares the rest."""
    folder = ROOT / "proofs"
    paths = [p for p in sorted(folder.rglob("*.py")) if p.parent.name not in ("kit", "vectors") and not p.name.startswith("__")]
    files = {".".join(path.relative_to(folder).with_suffix("").parts): dict(declared(path)) for path in paths}
    old = [f for f, kept in files.items() if kept != {s.name.rpartition(".")[2]: s.statement for s in statements.about(f)}]
    assert old == [], f"run: python -m proofs {' '.join(old)} --no-mutants --write-statements"
    assert {s.rpartition(".")[0] for s in statements.statements()} <= files.keys()


def test_no_proof_without_a_specification():
    proved = {
        ".".join(path.relative_to(ROOT / "proofs").with_suffix("").parts)
        for family in discovery.FAMILIES
        for path in (ROOT / "proofs" / family).glob("[!_]*.py")
    }
    assert proved - set(DOCUMENTED) == set()


def test_named_proofs_exist():
    files = sorted((ROOT / "posref").rglob("*.py"))
    assert [f"{path}: {said}" for path in files for said in proofs_exist(path.read_text(encoding="utf-8"))] == []


def tracked():
    git = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if git.returncode != 0:
        pytest.skip("not a git checkout: which files are tracked is unknown")
    return [path for path in git.stdout.split("\0") if path and (ROOT / path).is_file()]


def test_tracked_files_are_clean_text():
    complaints = []
    for path in tracked():
        text = (ROOT / path).read_text(encoding="utf-8")
        complaints += [f"{path}: {complaint}" for complaint in clean_text(text)]
        if path.endswith(".py") and not text.isascii():
            complaints.append(f"{path}: not plain ASCII")
    assert complaints == []


def banned():
    """The words in bold of the glossary."""
    return re.findall(r"\*\*(.+?)\*\*", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))


def other_words(text):
    """Banned words in a text, across lines too."""
    return [words for words in banned() if re.search(r"\b" + r"[\s#]+".join(words.split()), text, flags=re.IGNORECASE)]


def test_one_word_has_one_meaning():
    said = ((path, (ROOT / path).read_text(encoding="utf-8")) for path in tracked() if path.endswith((".md", ".py", ".html")))
    found = [f"{path}: {words}" for path, text in said if path != "docs/glossary.md" for words in other_words(text)]
    assert found == []
    assert all(other_words(words.upper().replace(" ", "\n    # ")) == [words] for words in banned())


def test_the_glossary_has_at_most_40_words():
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(rows) - 1 <= 40


def test_no_cache_or_build_is_tracked():
    assert [path for path in tracked() if re.search(r"__pycache__|\.egg-info|\.venv|\.nb[ci]$|^(build|dist)/", path)] == []


def test_presets_name_their_source():
    tables = {name: getattr(importlib.import_module(f"posref.{name}"), "PRESETS", {}) for name in SPECIFICATIONS}
    assert [(name, preset) for name, table in tables.items() for preset in table if not table[preset].get("source")] == []


# Each rule can fail


def test_every_says_all_that_fail():
    seen = []
    test = every(["a", "b", "c"])(lambda name: seen.append(name) or {"b": 1}[name])
    with pytest.raises(AssertionError, match=r"2 of 3 fail:\na: KeyError: 'a'\nc: KeyError: 'c'$"):
        test()
    assert seen == ["a", "b", "c"]
    with pytest.raises(AssertionError, match="nothing to test"):
        every([])(str)()


GOOD_PAGE = """Null: nothing.

It is needed.

Definition. So

    x = 0

Symbols.

    x (n,)   zeros

Conventions. None.

Where implementations differ.

    what | who | value | version | source
    sign | someone | minus | 1.0
      | a file

References. No one."""
BROKEN_PAGE = [
    ("It is needed.\n\n", ""),
    ("It is needed.", "It is needed.\n\nAlso: null."),
    ("It is needed.", "It is needed.\n\nAlso called: null.\n\nMore."),
    ("    x = 0", "x = 0"),
    ("(n,)   zeros", "(n,) zeros"),
    ("what | who", "who | what"),
    (" | 1.0", ""),
    ("Conventions. None.", "Properties. None."),
    ("Conventions. None.", "Conventions. None.\n\nExample. In words."),
    ("Symbols.\n", "Example. Here.\n\n>>> 0\n0\n\nSymbols.\n"),
    ("Null: nothing.", "Null"),
]


def test_in_the_grammar_can_fail():
    assert list(in_the_grammar(f'"""{GOOD_PAGE}"""')) == []
    for before, after in BROKEN_PAGE:
        assert before in GOOD_PAGE
        assert list(in_the_grammar(f'"""{GOOD_PAGE.replace(before, after)}"""')), after


IN_A_BODY = "def f(x):\n    {}"
OF_KINDS = "def f(x: Array, *, dim: Even, heads: Count, center: Number, layout: Layout, causal: bool) -> Array:\n    {}"
CAN_FAIL = [  # rule, the code around each snippet, snippets in which it finds something, snippets in which it finds nothing
    (
        runs_on_symbols,
        IN_A_BODY,
        r"""
        import math | from math import log | import warnings | from functools import lru_cache | assert x | return x.real
        return np.imag(x) | return np.asarray(x) | return np.array(x) | return np.array(x * 2) | return np.where(m, x, -np.inf)
        return np.where(m, x, float('-inf')) | out = np.empty_like(x) | global cache | warn('odd')
        """,
        "import numpy as np | return np.array([1, 2]) * x | return np.array([g(b) for b in range(n)])",
    ),
    (exact_numbers, "def f(x, base=10000.0):\n    {}", "return 0.5 * x", "return x / 2"),
    (doctested, "{}", r'def f(x): return x | def f(x):\n    """No example.""" | class Pair:\n    a = 1', "import numpy as np"),
    (
        asks_no_size,
        IN_A_BODY,
        r"""
        return x + 1 if x.shape[-1] == 4096 else x | n = x.shape[-1]\n    if n > 4: x = x + 1\n    return x
        n, m = x.shape[-2:]\n    return x if n - m else 0 | if len(x.shape) == 2: return x | return x if x.size else 0
        return x[int(x.shape[-1])] | return x.astype(float) | return x if x.dtype == float else 0 | return {x.shape[0]: 1}
        return x if 4 in x.shape else 0 | while len(x): x = x[1:] | return x.shape[-1] % 2 == 0 and x
        """,
        r"""
        return x[..., : x.shape[-1] // 2] | return np.arange(x.shape[-1]) < x | return x if mask is None else 0
        n = x.shape[-1]\n    i = np.arange(n)\n    return np.where(i < 3, x, 0)
        """,
    ),
    (
        only_formulas,
        OF_KINDS,
        r"""
        return x / (dim + 1 if dim == 2 else dim) | return x * (dim == 2) | return x * (dim == 1 + heads)
        return x if dim else -x | return dim and x | return [a for a in x if dim] | return x // 1 | return x - center // 1
        return x - np.floor(center) | return x - round(center) | return x * np.float32(1) | return np.cumsum(x, dtype=np.int16)
        return np.zeros(2, 'f4') + x | x[..., :1] = 0 | y = x\n    y[...] = 0 | y = np.zeros(2)\n    y = x\n    y[...] = 0
        x *= 2 | return np.exp(x, out=x) | x.shape = (dim,)
        """,
        r"""
        half = dim // 2\n    return x[..., : x.shape[-1] // 2] * (half % 2)
        if dim > 4096:\n        raise ValueError\n    return x
        return x if layout == 'half' and center is not None else np.where(x < dim, 0, x)
        y = np.zeros(dim)\n    y[0], y[1] = x[0], x[1]\n    return y if causal else x
        """,
    ),
    (
        no_default_where_the_world_disagrees,
        "def f({}): pass",
        "x, layout | x, *, layout='half' | x, convention='paper'",
        "x, *, layout, scale=1",
    ),
    (
        lambda text: computes_no_wrong_answer(text, {"sign"}),
        "{}",
        r"""
        if mistake == 'sign': x = -x | x = -x if mistake in ('sign', 'scale') else x | answers = {'sign': -x}
        answers['sign'] = -x | case('a', mistakes=answers)
        """,
        "yield case('a', kills='sign scale' + ' sign' * bool(x)) | if mistake == 'other': x = -x",
    ),
    (
        no_other_numbers,
        "def f(x, base=10000.0):\n    {}",
        r"""
        return np.minimum(x, 1024) | return np.where(x > 1e9, 0, x) | return x[:64] | return x * 2**20
        """
        + r'"""512.5 of 1.1024, x9 >>> 64"""\n    return x[:64] + x[:512]',
        r'return 2 * x[..., -1] + 1 / 3 | """x / 1024."""\n    return x / 1024',
    ),
    (
        defaults_as_published,
        "def f({}): pass",
        "base=1000.0 | *, base=None | x, *, scale=1",
        "x, mask=None, *, scale, base=10000.0",
    ),
    (
        positions_are_arguments,
        "def f(x, dim, positions): return np.arange({})",
        "x.shape[-2] | 1, len(x) + 1",
        "dim // 2",
    ),
    (proofs_exist, "Properties. {}: pinned.", "proofs/rotary/no_such_file.py", "proofs/rotary/rope.py"),
    (
        clean_text,
        "{}",
        " | ".join(["# TO" + "DO: later", "FIX" + "ME", "see /ho" + "me/me/x.py", "open('/tm" + "p/x')", "C" + ":\\users"]),
        "see proofs/rotary/rope.py and https://example.org/home/x",
    ),
    (
        short,
        "{}",
        r"x = 1\n" * (MAX_LINES + 1)
        + r' | def f(x):\n    x = 2\n    """One."""\n'
        + r"    if x:\n        x = 1\n" * 12
        + "    return x",
        r"x = 1\n" * MAX_LINES + r' | def f(x):\n    """One."""\n' + r"    if x:\n        x = 1\n" * 12 + r"    return x\n",
    ),
]


@pytest.mark.parametrize(("rule", "around", "broken", "good"), CAN_FAIL, ids=lambda value: getattr(value, "__name__", ""))
def test_a_rule_can_fail(rule, around, broken, good):
    """Snippets stand between bars or on lines of their own; in them, a backslash and an n begin a line."""
    found, passed = (
        [around.replace("{}", each.strip().replace("\\n", "\n")) for each in re.split(r" \| |\n", text) if each.strip()]
        for text in (broken, good)
    )
    assert [code for code in found if not list(rule(code))] == []
    assert [(code, said) for code in passed if (said := list(rule(code)))] == []
