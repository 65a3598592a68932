"""The versions that this package was written for. It overrides methods of LocalStack that are no public API, so another
version may break it in ways that look like faults of the product."""

LOCALSTACK = "4.9.2"
PYTHON = (3, 11)

_REMEDY = "remove .local/localstack-venv and run: LOCAL_CLOUD=localstack scripts/up"


def complaint(python: tuple[int, int], localstack: str | None) -> str | None:
    """Says what is wrong with the versions found and what to do, or nothing if they are right."""
    if tuple(python) != PYTHON:
        return (
            f"LocalStack is run by Python {python[0]}.{python[1]}, {PYTHON[0]}.{PYTHON[1]} is needed: its locked "
            f"requirements are for that; install it and {_REMEDY}"
        )
    if localstack is None:
        return f"LocalStack is not installed, {LOCALSTACK} is needed: {_REMEDY}"
    if localstack != LOCALSTACK:
        return f"LocalStack is version {localstack}, {LOCALSTACK} is pinned: {_REMEDY}"
    return None
