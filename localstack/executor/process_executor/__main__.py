"""Starts LocalStack, if it is the version that this package was written for."""

import importlib.metadata
import sys

from process_executor import versions


def main() -> int:
    try:
        installed = importlib.metadata.version("localstack-core")
    except importlib.metadata.PackageNotFoundError:
        installed = None
    complaint = versions.complaint(sys.version_info[:2], installed)
    if complaint:
        print(complaint, file=sys.stderr)
        return 2
    from localstack.runtime.main import main as serve

    return serve()


if __name__ == "__main__":
    sys.exit(main())
