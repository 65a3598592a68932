"""What functions must not have to run as processes. It is refused when the function is made, with the reason as its state's
reason, rather than left to fail in a way that looks like a fault of the function."""

import pathlib


class Refused(Exception):
    """The function cannot run here; the text says why and what would be right."""


def check_configuration(package_type: str | None, runtime: str | None, layers: int) -> None:
    if package_type == "Image":
        raise Refused("functions run as processes here, so one of a container image cannot; use a zip with a bootstrap")
    if not (runtime or "").startswith("provided"):
        raise Refused(f"runtime {runtime!r}: only provided.al2 and provided.al2023 run as processes, since they bring their own bootstrap")
    if layers:
        raise Refused(f"the function has {layers} layer(s), which would have to lie in /opt of this machine; put their files into its zip")


def check_code(folder: pathlib.Path) -> None:
    if (folder / "extensions").is_dir():
        raise Refused("the zip has a folder extensions: functions that run as processes have no extensions")
    bootstrap = folder / "bootstrap"
    if not bootstrap.is_file():
        raise Refused("the zip has no file bootstrap at its top")
    # Zips that were made without file modes lose the right to execute.
    bootstrap.chmod(bootstrap.stat().st_mode | 0o755)
