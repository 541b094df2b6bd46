#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what ./test built and counts single test cases.

Every kind of test (GoogleTest program, fuzz target, script, Python or Rust unit tests) is a Job: a command with a time limit
and a function that reads its counts. Jobs run two at a time; each one's output is kept in build/MODE/test-logs and shown when it
fails. The last line of the output is "N passed, N failed, N skipped".
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from typing import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLOWDOWN = {"release": 1, "asan": 3, "tsan": 10, "fuzz": 1}  # how much longer a job may take under a sanitizer
TIME_LIMIT_S = 420
CLIENTS_LIMIT_S = 1500  # the installation of the clients is among it
REPLAY_SECONDS = 3
JOBS_AT_ONCE = 2
SKIPPED_EXIT = 77  # a script that cannot run here ends with this status, as in automake
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "abort_on_error=0:detect_stack_use_after_return=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: "Counts") -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


@dataclasses.dataclass
class Outcome:
    """What a finished command left: its exit status (None when it ran out of time) and its output."""

    status: int | None
    output: str
    seconds: float


@dataclasses.dataclass
class Job:
    name: str
    command: list[str]
    count: Callable[[Outcome], Counts]
    limit_s: float = TIME_LIMIT_S
    environment: dict[str, str] = dataclasses.field(default_factory=dict)


def count_status(outcome: Outcome) -> Counts:
    """One test: the command itself."""
    if outcome.status == SKIPPED_EXIT:
        return Counts(skipped=1)
    return Counts(passed=1) if outcome.status == 0 else Counts(failed=1)


def with_status(counts: Counts, outcome: Outcome) -> Counts:
    """A command that failed without naming a failed test (a crash, a time limit) is a failure all the same."""
    if outcome.status != 0 and counts.failed == 0:
        counts.failed = 1
    return counts


def count_gtest_report(report: dict) -> Counts:
    counts = Counts()
    for suite in report.get("testsuites", []):
        for case in suite.get("testsuite", []):
            if case.get("failures"):
                counts.failed += 1
            elif case.get("result") == "COMPLETED":
                counts.passed += 1
            elif case.get("result") == "SKIPPED" or "DISABLED_" in case.get("name", "") + suite.get("name", ""):
                counts.skipped += 1
    return counts


def gtest_counter(report: pathlib.Path) -> Callable[[Outcome], Counts]:
    def count(outcome: Outcome) -> Counts:
        try:
            counts = count_gtest_report(json.loads(report.read_text(encoding="utf-8", errors="replace")))
        except (OSError, ValueError):  # it died before it could write the report: what had passed is in its output
            counts = Counts(passed=len(re.findall(r"^\[       OK \]", outcome.output, re.M)), failed=1)
        return with_status(counts, outcome)

    return count


def count_cargo(outcome: Outcome) -> Counts:
    counts = Counts()
    for passed, failed, ignored in re.findall(r"^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored", outcome.output, re.M):
        counts.add(Counts(int(passed), int(failed), int(ignored)))
    return with_status(counts, outcome)


def count_unittest(outcome: Outcome) -> Counts:
    ran = re.search(r"^Ran (\d+) tests?", outcome.output, re.M)
    if not ran:
        return Counts(failed=1)
    closing = outcome.output[ran.end():]
    number = {key: int(value) for key, value in re.findall(r"(failures|errors|skipped)=(\d+)", closing)}
    failed = number.get("failures", 0) + number.get("errors", 0)
    skipped = number.get("skipped", 0)
    return with_status(Counts(max(int(ran[1]) - failed - skipped, 0), failed, skipped), outcome)


def count_clients(outcome: Outcome) -> Counts:
    """Unit tests that are skipped as a whole where nothing can be installed."""
    return Counts(skipped=1) if outcome.status == SKIPPED_EXIT else count_unittest(outcome)


def gtest_jobs(build: pathlib.Path, programs: list[str], logs: pathlib.Path, text: str) -> list[Job]:
    jobs = []
    for program in programs:
        report = logs / f"{program}.json"
        report.unlink(missing_ok=True)
        command = [str(build / program), f"--gtest_output=json:{report}", "--gtest_brief=0"]
        if text and text not in program:
            command.append(f"--gtest_filter=*{text}*")
        jobs.append(Job(program, command, gtest_counter(report)))
    return jobs


def fuzz_jobs(build: pathlib.Path, programs: list[str], logs: pathlib.Path, seconds: int | None, seed: int = 0) -> list[Job]:
    """With libFuzzer for `seconds` (seed 0: another way each time), or the replay of the seed corpus with a few seconds of plain mutations."""
    jobs = []
    for program in programs:
        target = program.removesuffix("_replay")
        seeds = ROOT / "tests/fuzz" / target.removesuffix("_fuzz")
        corpus = [str(seeds)] if seeds.is_dir() else []
        if program.endswith("_replay"):
            command = [str(build / program), "--seconds", str(REPLAY_SECONDS), "--keep", str(logs / f"{target}.input"), *corpus]
            jobs.append(Job(program, command, count_status))
            continue
        grown = build / "corpus" / target  # what the fuzzer finds is kept between runs, apart from the committed seeds
        grown.mkdir(parents=True, exist_ok=True)
        limits = [f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-print_final_stats=1"]
        command = [str(build / program), *limits, f"-artifact_prefix={logs}/{target}-", str(grown), *corpus]
        jobs.append(Job(program, command, count_status, limit_s=(seconds or 0) + 180))
    return jobs


def script_jobs(mode: str, build: pathlib.Path) -> list[Job]:
    environment = {"WEIR": str(build / "weir"), "WEIR_BUILD": mode}
    jobs = []
    for path in sorted([*(ROOT / "tests/scripts").glob("*"), *(ROOT / "tests/server").glob("*_test.py")]):
        if path.suffix in (".sh", ".py") and os.access(path, os.X_OK):
            count = count_unittest if path.name.endswith("_test.py") else count_status
            command = [str(path), "-v"] if count is count_unittest else [str(path)]
            jobs.append(Job(f"{path.parent.name}/{path.name}", command, count, environment=environment))
    if mode == "release":
        jobs.append(Job("clients", [str(ROOT / "tests/clients/run_clients")], count_clients, CLIENTS_LIMIT_S, environment))
    for path in sorted((ROOT / "tools").glob("*_test.py")):
        jobs.append(Job(f"tools/{path.name}", [sys.executable, str(path), "-v"], count_unittest))
    return jobs


def cargo_jobs(build: pathlib.Path) -> list[Job]:
    crate = ROOT / "native/text"
    if not any("#[test]" in p.read_text(encoding="utf-8") for p in crate.rglob("*.rs")):
        return []
    # The release profile, in the folder where tools/build.sh builds the library: its crates are not built again.
    cargo = re.search(r"^CARGO:FILEPATH=(.+)$", (build / "CMakeCache.txt").read_text(), re.M)
    command = [cargo[1] if cargo else "cargo", "test", "--release", "--locked", "--manifest-path", str(crate / "Cargo.toml"),
               "--target-dir", str(ROOT / "build/native-text")]
    return [Job("native/text", command, count_cargo)]


def collect(mode: str, build: pathlib.Path, logs: pathlib.Path, text: str, fuzz_seconds: int | None, fuzz_seed: int) -> list[Job]:
    programs: dict[str, list[str]] = {"test": [], "fuzz": []}
    for line in (build / "test_programs.txt").read_text().split("\n"):
        if line:
            kind, name = line.split()
            programs[kind].append(name)
    # Listed from the lowest layer up; the highest run first, since those with whole models take longest.
    gtest = gtest_jobs(build, programs["test"][::-1], logs, text)
    rest = fuzz_jobs(build, programs["fuzz"], logs, fuzz_seconds, fuzz_seed)
    if mode == "release":
        rest += script_jobs(mode, build) + cargo_jobs(build)
    elif mode != "fuzz":
        rest += [job for job in script_jobs(mode, build) if job.name.startswith(("scripts/", "server/"))]
    return gtest + [job for job in rest if text in job.name]


def without_address_randomisation(command: list[str]) -> list[str]:
    """The thread sanitizer cannot place its shadow memory on kernels that randomise addresses by more than 28 bits."""
    setarch = shutil.which("setarch")
    if setarch and subprocess.run([setarch, "-R", "true"], capture_output=True).returncode == 0:
        return [setarch, "-R", *command]
    return command


def run_job(job: Job, mode: str, logs: pathlib.Path) -> tuple[Job, Outcome]:
    log = logs / (job.name.replace("/", "_") + ".log")
    command = without_address_randomisation(job.command) if mode == "tsan" else job.command
    environment = {**os.environ, **SANITIZER_OPTIONS, **job.environment}
    begin = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT,
                                   env=environment, start_new_session=True)
        try:
            status = process.wait(job.limit_s * SLOWDOWN[mode])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            status = None
            out.write(f"\nran past its limit of {job.limit_s * SLOWDOWN[mode]:.0f} s and was ended\n".encode())
    return job, Outcome(status, log.read_text(encoding="utf-8", errors="replace"), time.monotonic() - begin)


def skip_reasons(output: str) -> list[str]:
    """GoogleTest prints "file:line: Skipped" and the reason on the next line; unittest "skipped 'reason'" with -v."""
    return re.findall(r": Skipped\n(.+)", output) + re.findall(r"^test_.* \.\.\. skipped ['\"](.+)['\"]$", output, re.M) \
        + re.findall(r"^skipped: (.+)$", output, re.M)


def failure_lines(output: str, most: int = 80) -> list[str]:
    """What a reader needs of a failed job: the output of GoogleTest's failed cases, else the end of everything."""
    cases = re.findall(r"^\[ RUN      \] (\S+)\n(?:(?!\[ RUN ).*\n)*?\[  FAILED  \] \1", output, re.M)
    if not cases:
        return output.rstrip().split("\n")[-most:]
    lines: list[str] = []
    for case in cases:
        begin = output.index(f"[ RUN      ] {case}\n")
        end = output.index(f"[  FAILED  ] {case}", begin)
        lines += output[begin:end].rstrip().split("\n")[:most // 2]
    return lines[:most]


def run_all(jobs: list[Job], mode: str, logs: pathlib.Path) -> Counts:
    total = Counts()
    reasons: dict[str, int] = {}
    with concurrent.futures.ThreadPoolExecutor(JOBS_AT_ONCE) as pool:
        futures = [pool.submit(run_job, job, mode, logs) for job in jobs]
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            job, outcome = future.result()
            counts = job.count(outcome)
            total.add(counts)
            print(f"[{done}/{len(jobs)}] {job.name}: {counts} ({outcome.seconds:.1f} s)", flush=True)
            if counts.failed:
                print("\n".join(f"    {line[:300]}" for line in failure_lines(outcome.output)))
            for reason in skip_reasons(outcome.output):
                reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items()):
        print(f"skipped {count}: {reason[:200]}")
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mode", choices=sorted(SLOWDOWN), default="release", help="the folder of build/ to run")
    parser.add_argument("--filter", default="", help="only tests and programs whose name contains this")
    parser.add_argument("--fuzz-seconds", type=int, help="seconds for each libFuzzer target")
    parser.add_argument("--fuzz-seed", type=int, default=0, help="of libFuzzer's random choices; 0: another each time")
    options = parser.parse_args()

    build = ROOT / "build" / options.mode
    logs = build / "test-logs"
    logs.mkdir(parents=True, exist_ok=True)
    jobs = collect(options.mode, build, logs, options.filter, options.fuzz_seconds, options.fuzz_seed)
    total = run_all(jobs, options.mode, logs)
    if total.passed + total.failed == 0:
        print("no test ran")
    if total.failed:
        print(f"logs: {logs.relative_to(ROOT)}")
    print(total, flush=True)
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
