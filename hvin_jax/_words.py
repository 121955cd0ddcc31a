"""Numbers of things in words."""


def counted(number: int, noun: str) -> str:
    """Such as "1 action" and "2 actions"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
