"""What goes wrong with a configuration like this one, and which of its keys about position were not understood."""


def traps(settings, groups):
    """One sentence for each trap that this part of the file holds."""
    return [sentence for trap in TRAPS for sentence in trap(settings, groups)]


def unread(settings):
    """Keys that speak of position and that nothing here has read."""
    return []


TRAPS = ()
