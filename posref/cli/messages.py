"""Messages of the library as a terminal shows them: with options instead of arguments, without names of our functions."""

import re
import traceback

from posref.cli import typed

OURS = ("check", "discovery", "explain", "expressivity", "finding", "ops", "precision", "schema", "vectors")  # no op is theirs


def plain(message):
    """A message of the library for a terminal, without the name of a function of ours."""
    text = re.sub(rf"^({'|'.join(OURS)})(\.\w+)?: ", "", str(message)).replace("?; ", "? ")
    if not _is_about_a_file(message):  # whose keys are no options
        text = re.sub(
            r"^(?:\w+\.\w+: )?([a-z]\w+) is (?=[-'\d].*expected)", lambda found: f"{typed.option(found[1])} is ", text
        )
    text = re.sub(r"^(meaning|format|directory) is ", r"--\1 is ", text)
    text = re.sub(r"\b(the systems|there) are (?:\w+, ){20,}\w+", "`posref list` prints all systems", text)
    text = re.sub(r"^(there is no op '([\w.]+)\.[^']*'); there are [^;]+(?:; (did you mean .*\?))?$", _no_op, text)
    text = re.sub(r"\bthe systems are '.*", "`posref express` prints all systems", text)
    return re.sub(r"\bvectors\.cases\((.*?)\) lists", r"`posref vectors list \1` lists", text)


def _no_op(found):
    """Names that are near, and the command that lists all; the ops of a system can be 15."""
    said, system, near = found.groups()
    return f"{said};{f' {near}' * bool(near)} `posref check --as {system}` lists the ops of {system}"


def _is_about_a_file(error):
    first = getattr(error, "__context__", None) or error  # a Usage is raised where another error was met
    frames = traceback.walk_tb(getattr(first, "__traceback__", None))
    return any(frame.f_globals["__name__"].startswith("posref.explain") for frame, _ in frames)


def in_shell(text):
    """A message of posref.check with options instead of arguments."""
    text = re.sub(r"check\.(check(_\w+)?|load_output): ", "", text)
    text = re.sub(r"^(?:[\w.]+: )?(\w+) is '([^']*)', expected one of (.*)$", _expected, text)

    text = re.sub(r"\b(\w+)=None\b", lambda found: f"{typed.option(found[1])} none", text)

    def option(found):
        name, value = found.group(1).replace("_", "-"), found.group(2)
        return f"--{name} {value}" if value.strip(".") else f"--{name}{value}"

    return re.sub(r'\b(to|to_positions|max_position|positions|exponent_dim|layer|part|dtype|layout)="?([\w.]*)"?', option, text)


def _expected(found):
    """An option that takes one of several words.

    >>> _expected(re.fullmatch("(.*)=(.*), one of (.*)", "form=foo, one of 'signed', 'absolute', 'key'"))
    '--form foo: expected signed, absolute or key'
    """
    name, value, words = found.groups()
    *others, last = words.replace("'", "").split(", ")
    return f"{typed.option(name)} {value}: expected {', '.join(others)}{' or ' if others else ''}{last}"


def as_typed(sentence):
    """A diagnosis that compares settings, with options.

    >>> as_typed('with form="key"; you asked for form="signed"'), as_typed("with causal=True; you asked for causal=False")
    ('with --form key; you asked for --form signed', 'with --causal; you asked for --no-causal')
    """

    def option(found):
        name, value = typed.option(found[1]), found[2].strip('"')
        return {"True": name, "False": f"--no{name[1:]}"}.get(value, f"{name} {value.lower() if value == 'None' else value}")

    words = re.compile(r'\b([a-z]\w*)=("[^"]*"|[^\s,;()`"]+)')
    return words.sub(option, sentence) if "; you asked for " in sentence else sentence
