"""Makes one test of many checks and reports all that fail, because a test case per check would take longer than the check."""

import pytest


def some(things, of):
    """Every so many of the things to ask in cases of their own; the others are marked slow."""
    return [thing if n % of == 0 else pytest.param(thing, marks=pytest.mark.slow) for n, thing in enumerate(things)]


def every(things, name=str, parts=1):
    """Make of `test(thing)` a test of all of them; `name` is how a thing is called in the message.

    Of several `parts` the first is asked by pytest, the others are marked slow.
    """

    def wrap(test):
        def all_of(things):
            failures = []
            for thing in things:
                try:
                    test(*thing) if type(thing) is tuple else test(thing)
                except Exception as error:
                    failures.append(f"{name(thing)}: {type(error).__name__}: {error}")
            assert things, "nothing to test"
            assert not failures, f"{len(failures)} of {len(things)} fail:\n" + "\n".join(failures)

        def of_all():
            all_of(things)

        def of_part(part):
            all_of(things[part::parts])

        slow = [pytest.param(part, marks=pytest.mark.slow) for part in range(1, parts)]
        made = of_all if parts == 1 else pytest.mark.parametrize("part", [0, *slow])(of_part)
        made.__name__, made.__doc__, made.__module__ = test.__name__, test.__doc__, test.__module__
        return made

    return wrap
