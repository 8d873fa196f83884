"""Theorems: a function whose docstring is the statement and whose body proves it about the functions that ship.

    @theorem(of=[rope.rotate], sizes="all d")
    def relative():
        \"\"\"<R(m) q, R(n) k> = <q, R(n - m) k> for all m, n, frequencies, q, k and every even d.\"\"\"
        prove_equal(...)

    @relative.control
    def with_one_side_turned():
        \"\"\"<R(m) q, k> = <q, R(n - m) k>\"\"\"
        prove_equal(...)          # must be refuted, with a witness

A control is a guard, or a claim: a false sentence that a reader may believe. A claim is declared with the true sentence, and
both are printed. It is posref's own sentence, never in quotation marks; what somebody said is in `posref/facts/claims.json`.

    @relative.claim("The score changes unless both are turned.")
    def with_one_side_turned():
        \"\"\"It is enough to turn the keys.\"\"\"

What carries a theorem is its basis. Nothing said: the machine decides all of it. `argument=` says which step is prose,
`citation=` which is somebody else's theorem. `@example` in the place of `@theorem` marks what is evaluated at concrete numbers
alone; such a statement is checked like a theorem and is not called one.

A theorem is trusted only if it can fail: every function of `of` is replaced by a tripwire and the theorem must notice; its
mutants must fail some theorem of the file; and each control, a false sentence, must be refuted. Where mutants are run, each
body is also run on marked results (`proofs.kit.marks`) and on changed ones (`proofs.kit.changes`), which claims must notice. A
mutant that changes nothing is listed in `equivalent`, by its label, with the reason.
"""

import ast
import contextlib
import functools
import inspect
import itertools
import re
import signal
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from posref import ops
from proofs.kit import cases, changes, claims, honest, language, loops, marks, numbers, watch
from proofs.kit.cases import first_failure, run_cases
from proofs.kit.claims import prove_equal
from proofs.kit.mutants import Tripwire, mutants, posref_run_by, python_function, resumed, swapped, tripwire
from proofs.kit.record import RECORD
from proofs.kit.verdicts import Refuted, Unseen

TRUSTED = {
    "det",
    "rank",
    "inv",
    "nullspace",
    "eigenvals",
    "diff",
    "integrate",
    "limit",
    "summation",
    "series",
    "binomial",
    "floor",
}
TRUSTED |= {"solve", "solveset", "linsolve", "rsolve", "solve_forall", "is_irrational", "is_transcendental", "evalf"}
SECONDS_PER_MUTANT = 1  # of the processor, and ten times what the proof takes; a mutant may loop forever
SECONDS_WITH_MARKS = 4  # more than the proof takes: three times what a run needs that ends; some never end


class Unsound(AssertionError):
    """The theorem holds although it should not: a silent tripwire, a control that is not refuted, a surviving mutant."""


@dataclass
class Theorem:
    """A statement, its proof, and its controls."""

    body: object
    of: list
    sizes: str
    equivalent: dict
    argument: str = ""  # the step that is prose
    citation: str = ""  # the step that is somebody else's theorem
    silent: str = ""  # why nothing is compared in numbers
    as_written: str = ""  # why no obligation is more than 0 = 0: "formula", "runs" or a sentence
    values: str = ""  # why values are put in the place of symbols, or parts of expressions are read
    is_example: bool = False  # evaluated at concrete numbers alone
    controls: list = field(default_factory=list)
    truths: dict = field(default_factory=dict)  # name of a control that is a claim -> the true sentence
    seconds: float = 0  # of the proof

    @property
    def name(self):
        return f"{self.file}.{self.body.__name__}"

    @property
    def file(self):
        return self.body.__module__.removeprefix("proofs.")

    @property
    def statement(self):
        return sentence(self.body)

    @property
    def basis(self):
        """What carries the statement: machine, with an argument or a citation where it needs one; or it is an example."""
        if self.is_example:
            return "example"
        return " + ".join(["machine", *["argument"] * bool(self.argument), *["citation"] * bool(self.citation)])

    def control(self, body):
        """Register a control, a false sentence which `check_controls` demands to be refuted."""
        if body.__name__ in [known.__name__ for known in self.controls]:
            raise Unsound(f"{self.name} has two controls named {body.__name__}; rename one")
        self.controls.append(body)
        return body

    def control_by(self, name, mistake, **arguments):
        """Register a mistake of an op of `posref.ops` as a control: with these symbols it must not give the right answer."""
        op, given = ops.op(name), ops.Arguments(arguments)
        wrong = op.mistakes[mistake]

        def body():
            right = op.spec(**given)
            prove_equal(np.broadcast_to(wrong.wrong(op.spec, given), np.shape(right)), right)

        body.__name__, body.__doc__ = mistake, wrong.bug
        self.control(body)

    def claim(self, truth):
        """Register a control that readers see beside `truth`, the true sentence."""

        def register(body):
            self.truths[body.__name__] = truth
            return self.control(body)

        return register

    def prove(self):
        """Run the proof; returns the number of obligations, at least one."""
        RECORD.clear()
        cases.forget()
        start = time.process_time()
        for function in self.of:
            language.check(function)
        run_cases(self.body)
        self.seconds = time.process_time() - start
        if RECORD.obligations == 0:
            raise Unsound(f"{self.name} asserts nothing")
        return RECORD.obligations

    def check_honesty(self):
        """What was just proved is what the sentence and `sizes` say, as far as the kit can compare them."""
        if problem := honest.check(self):
            raise Unsound(f"{self.name} {problem}")

    def check_watched(self):
        """All claims of the body run, and values and names are what the theorem says."""
        if problem := watch.problem(self):
            raise Unsound(f"{self.name} {problem}")

    def check_controls(self):
        """Every control is refuted; returns {name: witness}."""
        if not self.controls:
            raise Unsound(f"{self.name} has no control")
        refuted = {control.__name__: self._refutation(control) for control in self.controls}
        if same := next((control.__name__ for control in self.controls if sentence(control) == self.statement), None):
            raise Unsound(f"{self.name} has the control {same}, whose sentence is its own")
        return refuted

    def described(self, name, witness):
        """The `Control` of a name."""
        body = next(control for control in self.controls if control.__name__ == name)
        truth = self.truths.get(name, "")
        return Control(name, sentence(body), "claim" if truth else "guard", truth, witness)

    def check_tripwires(self):
        """The proof executes every function it is about."""
        for function in self.of:
            if not self._executes(self.body, function):
                raise Unsound(f"{self.name} does not execute {function.__name__}")

    def check_results(self):
        """Claims depend on a result of each function, the expected ones on none, and each control is refuted by a result.

        Returns those that no claim sees: {function: "error" if only an error tells that it matters, or "nothing" if it runs}.
        """
        if not self.of and (run := posref_run_by(self.body)):
            raise Unsound(f"{self.name} runs {run[0]}, which `of` does not name")
        self._check_beginnings()
        made, failure = self._with_marks()
        if made.partial:
            name, word = min(made.partial.items())
            raise Unsound(f"{self.name} compares {word} of what {name.rpartition('.')[2]} returns; compare that, or say {word}")
        whole = failure is None and not made.failed
        self._check_expected(made, failure)
        functions = {marks.full_name(f): f for f in map(python_function, self.of)}
        left = {name: self._notices(f) for name, f in functions.items() if name not in made.seen}
        alone = "claim" not in left.values() and not made.seen and not RECORD.loops
        for name, noticed in left.items():
            unseen = noticed == "nothing" and self._carries(name, functions, alone)
            if unseen or (whole and name in made.results.called):
                raise Unsound(f"{self.name} claims nothing that depends on what {name.rpartition('.')[2]} returns")
        said = {name: f for name, f in functions.items() if honest.says_what(self, f)}
        self._check_kin([f for name, f in said.items() if left.get(name) == "claim"])
        for claimed in [made, *([self._behind_errors()] if failure else [])]:
            self._check_said(claimed, {name: f for name, f in said.items() if name in claimed.seen})
        if whole and (single := made.single()):
            last = single[0].rpartition(".")[2]
            raise Unsound(f"{self.name} compares single cells of what {last} returns; compare all, or at an index()")
        if whole and (lying := made.left_lying()):
            raise Unsound(f"{self.name} calls {lying[0].rpartition('.')[2]} and claims nothing of that result; compare each")
        if all(map(numbers.can_be_noted, functions.values())) and self.of:
            self._check_counterexamples(functions.values())
            if not RECORD.loops:
                self._check_facts(functions.values())
        return {name: noticed for name, noticed in left.items() if noticed != "claim"}

    def _check_beginnings(self):
        """A claim notices what each loop begins with."""
        for function, name in loops.begun():
            change = functools.partial(loops.beginning_elsewhere, function, name)
            if self._with_changed(change) is None:
                raise Unsound(f"{self.name} claims the same if {name} begins with something else; compare it with what it is")

    def _check_expected(self, made, failure):
        """What is expected has no mark of the functions that are pinned."""
        if isinstance(failure, Unseen):
            raise Unsound(f"{self.name}: {failure}")
        own = [f for f in made.expected if not re.search(rf"\b{f.rpartition('.')[2]}\b", self.statement)]
        if own and honest.pins(self):
            raise Unsound(f"{self.name} expects what {own[0]} computes, and its sentence does not name it")

    def _carries(self, name, functions, alone):
        """Whether a function that no claim notices had to be noticed: kernels alone, any number of arguments, or all it has."""
        if ".fast." in name:
            return alone
        if not numbers.can_be_noted(functions[name]):
            return True
        return changes.kept(functions[name], [f for f in functions.values() if numbers.can_be_noted(f)], self._with_changed)

    def _check_counterexamples(self, functions):
        """Each control of the theorem's own file, which no loop takes in pieces, is refuted by what a function returns."""
        own = [c for c in self.controls if c.__module__ == self.body.__module__ and not RECORD.loops]
        if told := next((c for c in own if self._of_no_result(c, functions)), None):
            raise Unsound(f"the control {told.__name__} of {self.name} is refuted by what no result is part of")

    def _check_facts(self, functions):
        """Each fact that a line claims is false for some changed results, of all functions or of one."""
        left = {*self._heard(contextlib.nullcontext)}
        for several in [functions, *([f] for f in functions)]:
            for change in changes.of_facts(several):
                false = {lines for lines, so in self._heard(change).items() if not so} if left else set()
                if told := sorted(words for words in false if isinstance(words, str)):
                    raise Unsound(f"{self.name} has a premise made of a result: {told[0]}; claim it by prove_that")
                left -= false
        for (where, line), *_ in sorted(lines for lines in left if isinstance(lines, tuple)):
            words = f"claims a fact that depends on no result, in line {line} ({where}); make it of a result, or a premise"
            raise Unsound(f"{self.name} {words}")

    def _heard(self, change):
        with claims.hearing() as heard:
            self._failure(change, self.body, SECONDS_WITH_MARKS + self.seconds)
        return heard

    def _with_marks(self):
        """The claims of a run in which functions of the theorem return marked results, and what ended the run."""
        functions = [f for f in dict.fromkeys(map(python_function, self.of)) if numbers.can_be_noted(f)]
        words = vocabulary(self.body)
        pinned = {marks.full_name(f) for f in functions if honest.of_whole_results(self) or honest.says_what(self, f)}
        ends = re.search(r"\b(first|last)\b", self.statement)
        with marks.marking(functions, self._without_names(functions), pinned, ends, "diff" in words) as made:
            try:
                with _limit(SECONDS_WITH_MARKS + self.seconds):
                    return made, first_failure(made.results.followed(self.body))
            except Exception as error:
                return made, error

    def _behind_errors(self):
        """The claims of a run that continues after each statement in which a marked result raises an error."""
        with contextlib.ExitStack() as stack:
            for helper in honest.helpers(self.body):
                with contextlib.suppress(TypeError):  # a closure has no other code
                    stack.enter_context(swapped(helper, resumed(helper)))
            return self._with_marks()[0]

    def _without_names(self, functions):
        return re.sub(rf"\b({'|'.join(f.__name__ for f in functions) or 'no'})\b", "", self.statement)

    def _notices(self, function):
        """How a proof ends where a function returns something else: by a "claim", by an "error", or with "nothing"."""
        failures = []
        for change in changes.ways(function):
            failures.append(self._with_changed(change))
            if getattr(failures[-1], "of_a_claim", False):
                return "claim"
        return "error" if failures[0] else "nothing"

    def _check_said(self, made, said):
        """Where the sentence says what a function returns, a claim compares an entry of a result with something else."""
        for name, f in said.items():
            if name not in made.apart:
                raise Unsound(
                    f"{self.name} compares {f.__name__} with itself alone, and says what it returns; compare it with that"
                )
            if name in made.outer - made.plain:
                raise Unsound(f"{self.name} compares no entry that {f.__name__} returns, and says what it is; compare each")
        self._check_kin(said.values() if made.results.slopes else ())

    def _check_kin(self, pinned):
        """Claims notice results of these functions that have much in common with the right ones."""
        noted = [f for f in map(python_function, self.of) if numbers.can_be_noted(f)]
        called = changes.called(noted, self._with_changed) if {*pinned} & {*noted} else ()
        kin = {w: change for w, change in changes.KIN.items() if change is not changes.by_one_place or not honest.bounded(self)}
        parts = [(function, part) for function in pinned if function in called for part in range(called[function])]
        for (function, part), word in itertools.product(parts, kin):
            made = []
            change = functools.partial(changes.returning_kin, function, noted, kin[word], part, made)
            if self._with_changed(change) is None and any(made):
                raise Unsound(f"{self.name} claims the same of {function.__name__} with its {word}; compare what it returns")

    def _of_no_result(self, control, functions):
        """Whether a control is refuted in the same words whatever these functions return."""
        seconds, told = SECONDS_WITH_MARKS + self.seconds, lambda failure: re.sub(r"#\d+", "", str(failure))
        plain = told(self._failure(contextlib.nullcontext, control, seconds))
        return all(
            told(self._failure(change, control, seconds)) == plain
            for f in functions
            for change in [*changes.ways(f), lambda f=f: changes.zeros(f)]
        )

    def _executes(self, body, function):
        return isinstance(self.failure(function, tripwire(function), body), Tripwire)

    def outcome(self, function, code):
        """How the proof ends with other code in the function's place: "survived", "refuted", or "failed" in any other way."""
        failure = self.failure(function, code)
        return "survived" if failure is None else "refuted" if isinstance(failure, Refuted) else "failed"

    def failure(self, function, code, body=None):
        """The exception that ends the proof, or that body, with other code in the function's place; None if there is none."""
        return self._failure(lambda: swapped(function, code), body or self.body)

    def _with_changed(self, change):
        """The exception that ends the proof under a change of results, without a witness; None if there is none."""
        with claims.without_witnesses():
            return self._failure(change, self.body, SECONDS_WITH_MARKS + self.seconds)

    def _failure(self, change, body, seconds=0):
        try:
            with change(), RECORD.of_another_run(), _limit(seconds or SECONDS_PER_MUTANT + 10 * self.seconds):
                return first_failure(body)
        except Exception as error:
            return error

    def _refutation(self, control):
        try:
            run_cases(control)
        except Refuted as refutation:
            if any(isinstance(node, ast.Raise) for helper in honest.helpers(control) for node in honest.nodes(helper)):
                raise Unsound(
                    f"the control {control.__name__} of {self.name} raises an error of its own; compare a result"
                ) from None
            if claim := honest.of_numbers_alone(control):
                raise Unsound(
                    f"the control {control.__name__} of {self.name} claims {claim}, which no result is part of"
                ) from None
            if words := honest.literal_witness(control):
                raise Unsound(
                    f"the control {control.__name__} of {self.name} has the counterexample {words}; make it of results"
                ) from None
            if self.of and not any(self._executes(control, function) for function in self.of):
                raise Unsound(f"the control {control.__name__} of {self.name} executes no function of the theorem") from None
            return numeric(str(refutation), f"the control {control.__name__} of {self.name}")
        raise Unsound(f"the control {control.__name__} of {self.name} was not refuted")


def numeric(witness, whose):
    """A witness is a sentence with numbers: where, what is there and what is expected."""
    if witness.startswith("not so:") or not re.search(r"\d", witness):
        raise Unsound(f"{whose} is refuted without numbers: {witness}; pass a counterexample to prove_that")
    return witness


def theorem(*, of, sizes, equivalent=None, **said):
    """Make a theorem about the functions `of`; `sizes` says for which sizes it holds ("all n, d", "d = 4").

    What else may be said: argument, citation, silent, as_written, values; see `Theorem` and `proofs.kit.honest`.
    """
    return lambda body: Theorem(body, list(of), sizes, dict(equivalent or {}), **said)


def example(*, of, sizes, equivalent=None, argument="", silent=""):
    """As `theorem`, for a statement that is evaluated at concrete numbers alone."""
    return lambda body: Theorem(body, list(of), sizes, dict(equivalent or {}), argument, silent=silent, is_example=True)


def sentence(body):
    """The docstring of a theorem or a control, on one line."""
    return " ".join((body.__doc__ or "").split())


def trusted(body):
    """Answers of sympy, beyond arithmetic, that a proof believes."""
    return sorted(vocabulary(body) & TRUSTED)


def vocabulary(body):
    """The names in the source of a proof and of those helpers of its file that it calls."""
    return set().union(*map(honest.names_in, honest.helpers(body)))


def theorems(module):
    """The theorems of a proof module, and its examples, in the order of the file; two of one name are an error."""
    found = [t for t in vars(module).values() if isinstance(t, Theorem) and t.body.__module__ == module.__name__]
    written = [node.name for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.FunctionDef)]
    for names in (written, [t.body.__name__ for t in found]):
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise Unsound(f"{module.__name__} defines {', '.join(twice)} twice, and one is lost; rename one")
    return found


def kill_mutants(all_theorems, module):
    """Try every mutant of every function of the shipped `module`, and of its private ones, against the theorems about it, until
    one fails.

    Functions of other modules that these theorems rely on have their mutants killed in their own proof file.

    Returns {theorem name: {"killed", "refuted", "survived", "equivalent"}}, the labels of the survivors, and labels listed as
    equivalent that do not survive. The theorem that notices a mutant gets it; "refuted" are those of the killed that met a
    witness, the others crashed or fell out of what can be decided. A survivor is charged to every theorem about the function.
    """
    score = {t.name: dict.fromkeys(("killed", "refuted", "survived", "equivalent"), 0) for t in all_theorems}
    survivors = []
    listed = {label: t for t in all_theorems for label in t.equivalent}
    under = {t.name: _under_proof(t) for t in all_theorems}
    unused = set(listed)
    for function in dict.fromkeys(f for t in all_theorems for f in under[t.name] if f.__module__ == module):
        about = [t for t in all_theorems if function in under[t.name]]
        spent, kills = Counter({t.name: 2 * t.seconds for t in about}), Counter()
        for label, code in mutants(function):
            about.sort(key=lambda t: spent[t.name] / (kills[t.name] + 1))  # the least time for a mutant first
            killer, outcome = _killer(function, code, about, spent)
            if killer is not None:
                kills[killer.name] += 1
                score[killer.name]["killed"] += 1
                score[killer.name]["refuted"] += outcome == "refuted"
            elif label in listed:
                unused.discard(label)
                score[listed[label].name]["equivalent"] += 1
            else:
                survivors.append(label)
                for t in about:
                    score[t.name]["survived"] += 1
    return score, survivors, sorted(unused)


def _under_proof(t):
    """The functions of a theorem, and the private ones that they call, of which no theorem speaks."""
    named = [python_function(f) for f in t.of]
    called = (g for f in named for g in language.reached(f) if g.__name__.startswith("_"))
    return list(dict.fromkeys([*named, *called]))


def _killer(function, code, candidates, spent):
    for t in candidates:
        start = time.process_time()
        outcome = t.outcome(function, code)
        spent[t.name] += time.process_time() - start
        if outcome != "survived":
            return t, outcome
    return None, "survived"


@contextlib.contextmanager
def _limit(seconds):
    def expire(*_):
        raise TimeoutError(f"no end after {seconds:.0f} s")

    previous = signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


@dataclass
class Control:
    """A control that was refuted: what it says, the true sentence if it is a claim, and the witness."""

    name: str
    statement: str
    kind: str  # "claim" or "guard"
    truth: str
    witness: str


@dataclass
class Result:
    """What one theorem showed, and what it took for granted."""

    name: str
    statement: str
    of: list
    sizes: str
    cases: list  # of the sizes, in which it was run
    basis: str
    argument: str
    citation: str
    hypotheses: list
    denominators: list
    trusted: list
    obligations: int
    trivial: int  # of the obligations: 0 = 0 as soon as both sides are written down
    as_written: str  # why all of them are, if they are
    symbolic: list  # sizes that were symbols
    controls: list
    status: str
    mutants: dict
    seconds: float
    numbers: int = 0  # results compared in numbers
    silent: str = ""  # why none is
    twins: dict = field(default_factory=dict)  # results of compiled twins that were compared with the specification's, by name
    premises: list = field(default_factory=list)  # facts that no result is part of
    signs: list = field(default_factory=list)  # of symbols that are positive, or not negative, by their making
    from_one: bool = False  # whether a size was a symbol, and each such size is at least 1
    values: str = ""  # why values are put in the place of symbols
    unseen: dict = field(default_factory=dict)  # functions whose results no claim sees: only an "error" tells, or "nothing"


def _said(entries):
    """Entries as text; the number of a bound index depends on what ran before."""
    return list(dict.fromkeys(re.sub(r"#\d+", "", str(entry)) for entry in entries))


def examine(t, with_results=False):
    """Prove a theorem, refute its controls, pull its tripwires, change its results; a failure is a status, not an exception."""
    start = time.process_time()
    counted, controls, status = (0, 0, "", []), [], "checked" if t.is_example else "proved"
    ground, cases, signs, unseen, premises, from_one = ([], [], []), [], [], {}, [], False
    try:
        plain = honest.reason(t) if t.prove() == RECORD.trivial else ""
        counted = RECORD.obligations, RECORD.trivial, plain, [s.name for s in RECORD.sizes]
        from_one = bool(RECORD.sizes) and all(s.is_positive for s in RECORD.sizes)
        cases, signs, premises = list(dict.fromkeys(RECORD.cases)), honest.signs(), [*RECORD.premises]
        ground = [_said(entries) for entries in (RECORD.hypotheses, RECORD.denominators, trusted(t.body))]
        t.check_honesty()
        t.check_tripwires()
        controls = [t.described(control, witness) for control, witness in t.check_controls().items()]
        if with_results:
            t.check_watched()
            unseen = t.check_results()
    except Exception as error:
        status = f"{type(error).__name__}: {error}"
    of = [f"{python_function(f).__module__.removeprefix('posref.')}.{python_function(f).__name__}" for f in t.of]
    carried = (t.basis, t.argument, t.citation, *ground)
    seconds = time.process_time() - start
    found = {"signs": signs, "unseen": unseen, "premises": premises, "from_one": from_one, "values": t.values}
    return Result(t.name, t.statement, of, t.sizes, cases, *carried, *counted, controls, status, {}, seconds, **found)
