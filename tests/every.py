"""One test of many things, which says all that fail: a case of its own for each would cost more than the check."""


def every(things, name=str):
    """Make of `test(thing)` a test of all of them; `name` is how a thing is called in the message."""

    def wrap(test):
        def of_all():
            failures = []
            for thing in things:
                try:
                    test(*thing) if type(thing) is tuple else test(thing)
                except Exception as error:
                    failures.append(f"{name(thing)}: {type(error).__name__}: {error}")
            assert things, "nothing to test"
            assert not failures, f"{len(failures)} of {len(things)} fail:\n" + "\n".join(failures)

        of_all.__name__, of_all.__doc__, of_all.__module__ = test.__name__, test.__doc__, test.__module__
        return of_all

    return wrap
