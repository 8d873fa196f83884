"""Report: what was checked, what fits, what the data cannot distinguish, and what to do."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Check:
    """One named check: "passed", "failed" or "skipped", and why."""

    name: str
    status: str
    detail: str = ""


@dataclass(frozen=True)
class Finding:
    """A hypothesis that fits while the right answer does not. `residual` is the largest error in units of the tolerance, so 1
    is the bound; None if no numbers were compared."""

    name: str
    sentence: str
    remedy: str
    residual: float | None = None


@dataclass(frozen=True)
class Precision:
    """The strictest precision model that fits, its residual, and the ways to compute float32 angles that fit the data."""

    model: str
    residual: float
    meaning: str
    angles: tuple[str, ...] = ()


@dataclass
class Report:
    """The outcome of a check. `ok`: no check failed. `require` is for tests, `str` for people, `as_dict` for programs."""

    subject: str
    checks: list[Check] = field(default_factory=list)
    diagnosis: list[Finding] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)
    precision: Precision | None = None
    advice: list[str] = field(default_factory=list)
    nearest: list[tuple[str, float]] = field(default_factory=list)
    ruled_out: int = 0
    stopped: bool = False

    @property
    def ok(self) -> bool:
        return all(check.status != "failed" for check in self.checks)

    def passed(self, name: str, detail: str = "") -> None:
        self.checks.append(Check(name, "passed", detail))

    def failed(self, name: str, detail: str) -> None:
        self.checks.append(Check(name, "failed", detail))

    def skipped(self, name: str, detail: str) -> None:
        self.checks.append(Check(name, "skipped", detail))

    def found(self, name: str, sentence: str, remedy: str) -> None:
        """Add a finding that explains the output, and add its remedy to the advice."""
        self.diagnosis.append(Finding(name, sentence, remedy))
        self.advice.append(remedy)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without NaN and infinity: a residual that is not finite becomes None."""
        return {"ok": self.ok, **_finite(asdict(self))}

    def require(self) -> None:
        """AssertionError with the whole report if a check failed; in a test, pytest shows the test's own line above it."""
        __tracebackhide__ = True
        if not self.ok:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        return "\n".join([self._title(), *self._diagnosis_lines(), *self._other_lines()])

    def __repr__(self) -> str:
        """The report with the reason first: pytest cuts `assert report.ok, report` after 120 characters."""
        reason = self._diagnosis_lines() or self._lines_of("failed")
        others = [line for line in self._other_lines() if line not in reason]
        return "\n".join([*reason, self._title(), *others]).strip()

    def _title(self) -> str:
        return f"posref: {self.subject} {'ok' if self.ok else 'FAILED'}"

    def _lines_of(self, status: str) -> list[str]:
        return [f"  {status}: {check.name}: {check.detail}" for check in self.checks if check.status == status]

    def _other_lines(self) -> list[str]:
        advice, failed = [f"  Advice: {text}" for text in self.advice], self._lines_of("failed")
        lines = [*(advice + failed if self._diagnosis_lines() else failed + advice), *self._lines_of("skipped")]
        passed = [f"{c.name} ({c.detail})" if c.detail else c.name for c in self.checks if c.status == "passed"]
        if passed:
            lines.append(f"  passed: {', '.join(passed)}")
        if self.precision is not None:
            lines.append(f"  Precision: {self.precision.model} ({self.precision.meaning})")
            if self.precision.angles:
                lines.append(f"  Angles agree with: {', or '.join(self.precision.angles)}")
        return lines + [f"  Undecided: {text}" for text in self.ambiguous]

    def _diagnosis_lines(self) -> list[str]:
        said = {f.sentence: f for f in self.diagnosis}  # two mistakes may be one setting
        lines = [f"  Diagnosis: {sentence}{_error(finding)}." for sentence, finding in said.items()]
        if self.diagnosis and self.ruled_out:
            near = "".join(f" (nearest: {name}, {ratio:.3g} times what rounding allows)" for name, ratio in self.nearest[:1])
            lines.append(f"  Ruled out: {self.ruled_out} other {'hypothesis' if self.ruled_out == 1 else 'hypotheses'}{near}.")
        elif self.ruled_out and not self.diagnosis:
            nearest = "; ".join(f"{name}, {ratio:.3g} times what rounding allows" for name, ratio in self.nearest)
            lines.append(f"  Diagnosis: none of {self.ruled_out} hypotheses fits.{f' Nearest: {nearest}.' if nearest else ''}")
        if self.stopped:
            lines.append(
                "  The search stopped at its limit: some pairs, numbers and edits are untried. "
                "Ask for less: first a smaller width (dim or head_dim), then fewer heads and tokens."
            )
        return lines


def _error(finding: Finding) -> str:
    if finding.residual is None:
        return ""
    return f" (largest error: {finding.residual:.2g} of what rounding allows)" if finding.residual else " (exactly equal)"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value
