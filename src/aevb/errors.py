"""What is raised at an argument of the wrong kind, and how messages show what was given."""


class WrongTypeError(TypeError, ValueError):
    """An argument that is no value of the kind asked for: a TypeError, and a ValueError like all that is refused."""


def shown(value, most: int = 80) -> str:
    """Return a value as a message shows it: in one line, cut where it gets long.

    Example:
        >>> shown("a" * 100, most=10)
        "'aaaaaa..."
    """
    text = " ".join(repr(value.item() if hasattr(value, "item") and not getattr(value, "shape", 1) else value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."
