"""Settings as text: reads a table of many small numbers from few lines."""

from ast import literal_eval


def settings(text):
    """{name: value} of words `name=value`; values are Python's, written without blanks.

    settings("dim=8 sides=[2,3] form='signed'") is {"dim": 8, "sides": [2, 3], "form": "signed"}.
    """
    return {name: literal_eval(value) for name, value in (word.split("=", 1) for word in text.split())}
