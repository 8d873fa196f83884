"""Code: writes the source of the checks of a contract, one function of plain comparisons."""

import collections.abc
import typing

from posref._contract.axes import BESIDE, TOGETHER
from posref._contract.kinds import Arrays, Scalar, finite, kept
from posref._contract.values import is_record, whole


def source_of(name, made):
    """The source of the function that checks the arguments and then calls the body."""
    writer = _Writer(made)
    lines = writer.scalars() + writer.arrays()
    signature = []
    for parameter in made.signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in signature:
            signature.append("*")
        default = "" if parameter.default is parameter.empty else f"=_default_{parameter.name}"
        signature.append(parameter.name + default)
    call = [f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name for p in made.signature.parameters.values()]
    body = "".join(f"    {line}\n" for line in lines)
    return f"def {name}({', '.join(signature)}):\n{body}    return _body({', '.join(call)})\n"


class _Writer:
    """Writes the checks of one contract, line by line; extents are locals with an underscore, shapes end in `_shape`."""

    def __init__(self, made):
        self.made = made
        self.arguments = made.arguments
        self.array_arguments = [a for a in made.arguments.values() if isinstance(a.rule, Arrays)]
        self.bound = {}  # extents that are known here; True if always, False if only where an argument was given
        self.may_be_missing = {a.terms[0].text for each in self.array_arguments for a in each.shape.axes if a.mark == "?"}
        self.soft = set()  # extents that nobody says: all of their axes broadcast
        self.unsure = []  # extents that an optional argument says first
        self.read = set()  # (argument, place) of the axes that say an extent

    def scalars(self):
        """Checks of all arguments that are not arrays, and the extents that integer arguments set."""
        lines = []
        for name, argument in self.arguments.items():
            checks = self._scalar(name, argument.rule)
            if checks and argument.optional:
                checks = [f"if {name} is not None:", *_indented(checks)]
            lines += checks
            if isinstance(argument.rule, Scalar) and argument.rule.integer and self._is_extent(name):
                lines.append(f"_{name} = {name}")
                self.bound[name] = not argument.optional
        return lines

    def _is_extent(self, name):
        axes = [axis for a in self.array_arguments for axis in a.shape.axes]
        return any(name in (axis.by, axis.least) or name in t.names for axis in axes for t in axis.terms)

    def _scalar(self, name, rule):
        if isinstance(rule, Scalar):
            kind, infinite = ("integer", "") if rule.integer else ("number", f" or {name} - {name} != 0")
            lines = [f"if type({name}) is not _{kind}{infinite}:", f"    {name} = _refuse.{kind}({name!r}, {name})"]
            if rule.condition != "True":
                lines += _refused(f"not ({rule.condition.format(name)})", f"scalar({name!r}, {name})")
            return lines
        if typing.get_origin(rule) is typing.Literal:
            allowed = typing.get_args(rule)
            if set(allowed) == {True, False}:
                return [f"if {name} is not True and {name} is not False:", f"    _refuse.choice({name!r}, {name})"]
            same = " and ".join(f"{name} is not {each!r}" if each is None else f"{name} != {each!r}" for each in allowed)
            return [f"if type({name}) is not {type(allowed[0]).__name__} or {same}:", f"    _refuse.choice({name!r}, {name})"]
        if typing.get_origin(rule) is collections.abc.Callable:
            return _refused(f"not callable({name})", f"function_of({name!r}, {name})")
        if is_record(rule):
            return _refused(f"not isinstance({name}, _record_{name})", f"record({name!r}, {name})")
        if typing.get_origin(rule) is tuple:
            wrong = f"type({name}) not in (_tuple, _list) or len({name}) != {len(typing.get_args(rule))}"
            return _refused(wrong, f"several({name!r}, {name})")
        return []

    def arrays(self):
        lines = []
        if not self.array_arguments:
            return lines
        look = [line for argument in self.array_arguments for line in self._given(argument, self._look(argument))]
        values = ", ".join(
            f"{a.name!r}: {a.name if whole(a) == a.name else whole(a) + ' and ' + a.name}" for a in self.array_arguments
        )
        lines += ["try:", *_indented(look), "except AttributeError:"]
        lines += [
            f"    _error = _refuse.not_arrays({{{values}}})",
            "    if _error is None:",
            "        raise",
            "    raise _error from None",
        ]
        for argument in self.array_arguments:
            lines += self._given(argument, self._kind(argument) + self._rank(argument))
        checks = self._binds() + self._compares() + self._leads()
        return [*lines, *(f"_{name} = None" for name in self.unsure), *checks]

    def _given(self, argument, lines):
        """The lines, under `if .. is not None` where the argument is optional."""
        return [f"if {whole(argument)} is not None:", *_indented(lines)] if argument.optional and lines else lines

    def _look(self, argument):
        name, local = argument.name, _local(argument)
        return [f"{local}_shape = {name}.shape", f"{local}_kind = {name}.dtype.kind"]

    def _kind(self, argument):
        name, local, rule = argument.name, _local(argument), argument.rule
        lines = _refused(f"type({name}) is _matrix", f"matrix({name!r})")
        others = _refused(f"{local}_kind not in {rule.kind.dtypes!r}", f"kind({name!r}, {name})") if rule.kind.dtypes else []
        if "i" in rule.kind.dtypes and kept not in rule.marks and name == whole(argument):
            narrow = f"if {local}_kind in 'iu' and {name}.dtype is not _int64:"
            others += [narrow, f"    {name} = _refuse.widened({name!r}, {name})"]
        floats = "f" in rule.kind.dtypes
        lines += [f"if {local}_kind != 'f':", *_indented(others)] if floats else others
        if finite in rule.marks:
            lines += _refused(f"{local}_kind in 'fc' and not _isfinite({name}).all()", f"not_finite({name!r}, {name})")
        return lines

    def _rank(self, argument):
        name, shape = argument.name, argument.shape
        rank = f"len({_local(argument)}_shape)"
        if shape.like:
            return []
        if shape.lead or shape.open:
            test = f"{rank} < {shape.least}" if shape.least else ""
        elif shape.least == len(shape.axes):
            test = f"{rank} != {shape.least}"
        else:
            test = f"not {shape.least} <= {rank} <= {len(shape.axes)}"
        return _refused(test, f"rank({name!r}, {name})") if test else []

    def _binds(self):
        """Read each extent from an axis that is this extent alone; then the extents that stand only in 2*span or dim/2."""
        lines = []
        for plain in (True, False):
            for argument in self.array_arguments:
                for place, axis in enumerate(argument.shape.axes):
                    term = axis.terms[0]
                    alone = len(axis.terms) == 1 and axis.mark != "#" and len(self._unknown(term)) == 1
                    if alone and plain == (term.text in term.names) and axis.mark != "#":
                        (name,) = self._unknown(term)
                        if name not in self.bound or not self.bound[name]:
                            lines += self._bind(argument, place, axis, term, name)
        for name, argument in self.arguments.items():
            rule = argument.rule
            if isinstance(rule, Scalar) and name in self.bound and argument.optional and rule.condition != "True":
                sizes = rule.condition.format(f"_{name}")
                unsaid = f"{name} is None and _{name} is not None"
                lines += _refused(f"{unsaid} and not ({sizes})", f"size({name!r}, _{name}, locals())")
        return lines

    def _unknown(self, term):
        return [name for name in term.names if not self.bound.get(name)]

    def _bind(self, argument, place, axis, term, name):
        self.read.add((argument.name, place))
        extent = _extent(argument, place)
        coefficient = term.coefficients[name]
        rest = "".join(f" - {c} * _{other}" if other else f" - {c}" for other, c in term.coefficients.items() if other != name)
        value = f"{extent}{' * ' + str(term.divisor) if term.divisor > 1 else ''}{rest}"
        solved = value if coefficient == 1 else f"({value}) // {coefficient}" if coefficient > 1 else f"-({value})"
        wrong = []
        if term.scaled:
            tests = [f"{coefficient} * _{name} != {value}"] if coefficient > 1 else []
            tests.append(f"{extent} == 0")
            wrong = _refused(" or ".join(tests), f"multiple({argument.name!r}, {place}, locals())")
        elif term.coefficients.get("", 0) > 0:
            wrong = _refused(f"{extent} < {term.coefficients['']}", f"multiple({argument.name!r}, {place}, locals())")
        bind = [f"_{name} = {solved}", *wrong]
        if axis.mark == "?":
            bind = [f"if {_present(argument, place)}:", *_indented(bind), "else:", f"    _{name} = None"]
        if name in self.bound:  # bound only where an earlier argument was given
            refuse = f"raise _refuse.extent({argument.name!r}, {place}, locals())"
            bind = [f"if _{name} is None:", *_indented(bind), f"elif {_differs(extent, axis, term)}:", f"    {refuse}"]
        elif argument.optional:
            self.unsure.append(name)
        self.bound[name] = self.bound.get(name) or not argument.optional
        return self._given(argument, bind)

    def _compares(self):
        """Compare the other axes with known extents: first for equality, so that equal symbols are not compared with 1."""
        lines = []
        for argument in self.array_arguments:
            shape = argument.shape
            for place, axis in enumerate(shape.axes):
                extent = _extent(argument, place)
                at, checks = f"{argument.name!r}, {place}", []
                if axis.mark == "!":
                    checks.append((f"{extent} == 0", f"multiple({at}, locals())"))
                if axis.by:
                    test = f"_{axis.by} == 0 or {extent} % _{axis.by} != 0"
                    checks.append((test, f"related({at}, 'a multiple of', {axis.by!r}, locals())"))
                if axis.least:
                    checks.append((f"{extent} < _{axis.least}", f"related({at}, 'at least', {axis.least!r}, locals())"))
                for check in checks:
                    lines += self._given(argument, _refused(*check))
                if (argument.name, place) not in self.read:
                    lines += self._given(argument, self._compare(argument, place, axis))
            if shape.like:
                differs = f"{_local(argument)}_shape != {_local(self.arguments[shape.like])}_shape"
                lines += self._given(argument, _refused(differs, f"like({argument.name!r}, locals())"))
        return lines

    def _compare(self, argument, place, axis):
        extent, here = _extent(argument, place), _present(argument, place)
        name = axis.terms[0].text
        if axis.mark == "#" and name in axis.terms[0].names and (name not in self.bound or name in self.soft):
            return self._soften(name, extent, argument, here)
        tests = [_differs(extent, axis, term) for term in axis.terms]
        known = [f"_{n} is not None" for t in axis.terms for n in t.names if self.bound.get(n) is not True]
        if axis.mark != "#":
            return _refused(" and ".join([*known, *tests]), f"extent({argument.name!r}, {place}, locals())")
        missing = f"_{axis.terms[0].text} is None"  # beside an axis that is missing, this one would be new
        optional = [name for name in axis.terms[0].names if name in self.may_be_missing]
        wrong = f"({missing} or {tests[0]} and {extent} != 1)" if optional else " and ".join([*known, *tests, f"{extent} != 1"])
        return _refused(f"{here} and {wrong}", f"lead({argument.name!r}, locals())")

    def _soften(self, name, extent, argument, here):
        """An extent that stands only in axes with #: an axis of length 1 takes the length of the others."""
        if name not in self.bound:
            self.soft.add(name)
            self.bound[name] = not argument.optional
            self.unsure += [name] * argument.optional
            return [f"_{name} = {extent} if {here} else 1"]
        if not self.bound[name]:
            here += f" and _{name} is not None"
        refuse = f"raise _refuse.lead({argument.name!r}, locals())"
        differs = f"if {here} and {extent} != _{name} and {extent} != 1:"
        return [differs, f"    if _{name} != 1:", f"        {refuse}", f"    _{name} = {extent}"]

    def _leads(self):
        """Leading axes: first those that broadcast together, then those that must broadcast to the result."""
        lines, first = [], True
        together = [a for a in self.array_arguments if a.shape.lead in TOGETHER]
        names = [a.name for a in together]
        if any(a.optional for a in together[:1]) or (not together and any(a.shape.lead for a in self.array_arguments)):
            lines.append("_lead = ()")
            first = False
        needed = len(together) > 1 or any(a.shape.lead in BESIDE for a in self.array_arguments)
        for argument in together if needed else ():
            lead = self._lead(argument)
            if first:
                lines.append(f"_lead = {lead}")
                first = False
                continue
            lines += self._given(
                argument,
                [
                    f"if {lead} != _lead:",
                    f"    _lead = {'_shared' if argument.shape.lead == '%...' else '_joined'}(_lead, {lead})",
                    "    if _lead is None:",
                    f"        raise _refuse.together({names!r}, locals())",
                ],
            )
        for argument in self.array_arguments:
            if argument.shape.lead in BESIDE:
                lead, all_of = self._lead(argument), argument.shape.lead != "#..."
                fits = "_joined(_own, _lead) is not None" if argument.shape.lead == "[...]" else "_reaches(_own, _lead)"
                ranks = "len(_own) != len(_lead) or " if all_of else ""
                test = f"_own and _own != _lead and ({ranks}not ({fits}))"
                refused = _refused(test, f"lead({argument.name!r}, locals())")
                lines += self._given(argument, [f"_own = {lead}", *refused])
        return lines

    def _lead(self, argument):
        front = argument.shape.front or ""
        count = len(argument.shape.axes) - argument.shape.front
        return f"{_local(argument)}_shape[{front}:-{count}]" if count else f"{_local(argument)}_shape[{front}:]"


def _local(argument):
    return "_" + argument.name.replace(".", "_").replace("[", "_").replace("]", "")


def _extent(argument, place):
    return f"{_local(argument)}_shape[{argument.shape.at(place)}]"


def _present(argument, place):
    """Code that tests whether an axis counted from the back exists."""
    return f"len({_local(argument)}_shape) > {-argument.shape.at(place) - 1}"


def _differs(extent, axis, term):
    """Code that tests whether an extent differs from the term; with the mark +, whether it is smaller."""
    left = extent if term.divisor == 1 else f"{term.divisor} * {extent}"
    return f"{left} {'<' if axis.mark == '+' else '!='} {_numerator(term)}"


def _numerator(term):
    """Code of the numerator of a term, in which extents are local variables."""
    parts = []
    for name, factor in term.coefficients.items():
        part = (f"_{name}" if abs(factor) == 1 else f"{abs(factor)} * _{name}") if name else str(abs(factor))
        parts.append(("- " if factor < 0 else "+ ") + part)
    return " ".join(parts).removeprefix("+ ")


def _refused(test, error):
    return [f"if {test}:", f"    raise _refuse.{error}"]


def _indented(lines):
    return [f"    {line}" for line in lines]
