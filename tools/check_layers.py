#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom: every #include "folder/…" in src/ and apps/ against the table below (docs/design.md, "Layers").

A folder may include itself, the folders it names, and what those may include in turn. The links in CMakeLists.txt must keep to
the same table. base/testing.h is for tests, benchmarks and fuzz targets only.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# From the bottom up: folder → the folders directly below it. Bookkeeping (sampling, kvcache, scheduler) sees no tensors and no model.
LAYERS: dict[str, set[str]] = {
    "base": set(),
    "energy": {"base"},
    "tensor": {"base"},
    "kernels": {"tensor"},
    "formats": {"tensor"},
    "http": {"base"},
    "text": {"base"},
    "tokenizer": {"formats"},
    "grammar": {"text", "tokenizer"},
    "sampling": {"base"},
    "speculation": {"base"},
    "kvcache": {"base"},
    "scheduler": {"kvcache"},
    "model": {"formats", "kernels"},
    "engine": {"model", "tokenizer", "text", "grammar", "sampling", "speculation", "scheduler"},
    "store": {"formats"},
    "eval": {"engine"},
    "bench": {"engine"},
    "telemetry": {"http"},
    "api": {"engine"},
    "serving": {"api", "telemetry"},
    "loadgen": {"energy", "http", "tokenizer"},
    "mlperf": {"engine", "loadgen"},
    "apps": {"eval", "bench", "store", "serving", "loadgen", "mlperf"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z0-9_]+)/([^"]+)"', re.M)
LIBRARY = re.compile(r"^\s*weir_library\((\w+)([^)]*)\)", re.M)
FOR_TESTS = re.compile(r"_(test|fuzz|bench)\.cc$|(\b|_)test(ing)?(_[a-z0-9_]+)?\.h$")


def allowed(folder: str, layers: dict[str, set[str]] = LAYERS) -> set[str]:
    """The folder itself and everything below it."""
    reach, todo = set(), [folder]
    while todo:
        current = todo.pop()
        if current not in reach:
            reach.add(current)
            todo.extend(layers[current])
    return reach


def check_source(folder: str, name: str, text: str) -> list[str]:
    problems = []
    for match in INCLUDE.finditer(text):
        target, file = match.groups()
        line = text.count("\n", 0, match.start(1)) + 1
        where = f"{name}:{line}"
        if target in LAYERS and target not in allowed(folder):
            problems.append(f'{where}: {folder} must not include "{target}/{file}"; it may include {", ".join(sorted(allowed(folder)))}')
        elif target not in LAYERS and (ROOT / "src" / target).is_dir():
            problems.append(f"{where}: the folder {target} is not in the table of tools/check_layers.py")
        if (target, file) == ("base", "testing.h") and not FOR_TESTS.search(name):
            problems.append(f"{where}: base/testing.h is for tests")
    return problems


def check_links(cmake: str) -> list[str]:
    problems = []
    for folder, arguments in LIBRARY.findall(cmake):
        if folder not in LAYERS:
            problems.append(f"CMakeLists.txt: the library {folder} is not in the table of tools/check_layers.py")
            continue
        for target in re.findall(r"\bweir_(\w+)", arguments):
            if target in LAYERS and target not in allowed(folder):
                problems.append(f"CMakeLists.txt: {folder} must not link {target}")
    return problems


def sources(top: pathlib.Path) -> list[pathlib.Path]:
    return sorted(p for p in top.rglob("*") if p.suffix in (".cc", ".h", ".inl", ".inc"))


def main() -> int:
    problems = check_links((ROOT / "CMakeLists.txt").read_text())
    count = 0
    for path in sources(ROOT / "src") + sources(ROOT / "apps"):
        relative = path.relative_to(ROOT)
        folder = "apps" if relative.parts[0] == "apps" else relative.parts[1]
        count += 1
        if folder not in LAYERS:
            problems.append(f"{relative}: the folder {folder} is not in the table of tools/check_layers.py")
            continue
        problems += check_source(folder, str(relative), path.read_text(encoding="utf-8"))
    for problem in problems:
        print(problem)
    print(f"layers: {count} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
