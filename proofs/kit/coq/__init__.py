"""Obligations as lemmas of Coq, each with the steps of its proof, for a second kernel.

    python -m proofs rope --export-coq DIR        writes Sums.v, and a file for each system: its lemmas and their proofs

A lemma says what the obligation says: for all real numbers, all functions from real numbers for arrays, and all natural numbers
for sizes and indices, of which sizes are at least 1; a symbol that is divided by is not 0. The steps are found here and are not
trusted: Coq's kernel accepts a proof or does not. They are of three kinds. Angles and exponents become sums of monomials, so
that the addition theorems make polynomials of both sides, and these are compared modulo sin^2 = 1 - cos^2. A linear combination
of sums over one index is put under one sum, and its terms are compared. Complex numbers are compared part by part.

What has no such proof here is written as a comment with the reason.
"""

import itertools
import re
import shutil
import subprocess
from pathlib import Path

from proofs.kit.coq.lemmas import lemma
from proofs.kit.coq.terms import Open

RUN = 300  # seconds
LIMIT = "Set Default Timeout {}.\n\n"
HEADER = "(* Obligations of {}: generated. *)\n\nRequire Import Reals Lra Sums.\nOpen Scope R_scope.\n"


def write(theorems, folder):
    """Write the lemmas of theorems (records of `export`) and Sums.v into a folder; returns {file: [names of its lemmas]}."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("Sums.v"), folder / "Sums.v")
    written = {}
    for system, of_system in itertools.groupby(theorems, key=lambda t: t["name"].rpartition(".")[0]):
        file, names, texts = re.sub(r"\W", "_", system), [], [HEADER.format(system)]
        for t in of_system:
            for number, pair in enumerate(t["obligations"], 1):
                name = f"{t['name'].rpartition('.')[2]}_{number}"
                try:
                    texts.append(lemma(name, *pair, t["symbols"]))
                    names.append(name)
                except Open as why:
                    texts.append(f"(* {name} is open: {why} *)\n")
        (folder / f"{file}.v").write_text("\n".join(texts), encoding="utf-8")
        written[file] = names
    return written


def judge(folder, file):
    """(lemmas of a file that Coq's kernel accepts, axioms that they rest on); the others are taken out of the file.

    A step of a proof has 20 seconds, a run of Coq five minutes: then `subprocess.TimeoutExpired`. What was accepted in time may
    take longer when it is read again: a step has all of the run.
    """
    path = folder / f"{file}.v"
    head, *lemmas = re.split(r"^(?=Lemma )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    done = _compiled(path, [head, *lemmas], 20)
    if done.returncode:
        asked = [f"{each}\nCheck {_title(each)}.\nAbort All.\n" for each in lemmas]
        told = _run(["coqtop", "-q"], folder, "".join([head, LIMIT.format(20), *asked])).stdout
        lemmas = [each for each in lemmas if re.search(rf"^(\w+ < )*{_title(each)}\s+: ", told, flags=re.MULTILINE)]
        done = _compiled(path, [head, *lemmas], RUN)
    if done.returncode:
        raise AssertionError(f"{path}: {done.stderr}")
    axioms = set(re.findall(r"^(\w+(?:\.\w+)+)", done.stdout.partition("Axioms:")[2], flags=re.MULTILINE))
    return [_title(each) for each in lemmas], axioms


def _title(text):
    return text.split()[1]


def _compiled(path, texts, seconds):
    """coqc on the texts, of which a step has these seconds, and on a question about the axioms under all of their lemmas."""
    everything = ", ".join(["I", *map(_title, texts[1:])])
    question = f"Definition everything := ({everything}).\nPrint Assumptions everything.\n"
    path.write_text("".join([texts[0], LIMIT.format(seconds), *texts[1:], question]), encoding="utf-8")
    return _run(["coqc", "-q", path.name], path.parent)


def _run(command, folder, said=None):
    return subprocess.run(command, cwd=folder, input=said, capture_output=True, text=True, check=False, timeout=RUN)
