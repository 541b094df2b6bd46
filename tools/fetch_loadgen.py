#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Downloads MLPerf LoadGen's source distribution, once, to $WEIR_SOURCE_CACHE (default ~/.cache/weir/sources), and prints the folder.

CMake calls it while it configures. The files are left as they are, since results count only with an unaltered LoadGen. Without network
it says why and fails: the build goes on without `weir bench mlperf`.
"""

import os
import pathlib
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fetch_test_data  # noqa: E402

NAME = "mlcommons_loadgen-6.0.17"
FOLDERS = ("", "bindings", "generated")


def unpack(sdist: pathlib.Path, target: pathlib.Path) -> None:
    """Sources and headers of the library; what belongs to Python stays where it is."""
    with tarfile.open(sdist, "r:gz") as archive:
        for member in archive:
            top, _, path = member.name.partition("/")
            folder, _, name = path.rpartition("/")
            if member.isfile() and top == NAME and folder in FOLDERS and name.endswith((".cc", ".h", ".conf", ".txt")):
                fetch_test_data.copy_member(archive.extractfile(member), target / NAME / path, member.size)
    if not (target / NAME / "loadgen.cc").exists():
        raise fetch_test_data.FetchError("the package holds no loadgen.cc")


PACKAGE = fetch_test_data.Package(
    "mlcommons-loadgen", "6.0.17", "a2e85d09e3cc0c606f89bfe1fbf97537c8b5b238ae0afbd923ad9c710fcf2ca8", 1, [NAME], unpack,
    build_requires=("setuptools==75.8.0", "wheel==0.45.1", "pybind11==2.11.1"))


def main() -> int:
    cache = pathlib.Path(os.environ.get("WEIR_SOURCE_CACHE") or pathlib.Path.home() / ".cache/weir/sources")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if not (cache / NAME).exists():
            fetch_test_data.install(PACKAGE, cache)
    except (fetch_test_data.FetchError, OSError, tarfile.TarError) as error:
        if not (cache / NAME / "loadgen.cc").exists():  # else another build folder's configuration was faster
            print(f"MLPerf LoadGen was not fetched: {error}", file=sys.stderr)
            return 1
    print(cache / NAME)
    return 0


if __name__ == "__main__":
    sys.exit(main())
