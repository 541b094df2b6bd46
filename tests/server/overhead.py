#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the server costs over the bare engine: `weir bench engine` and `weir serve` under `weir bench load` in turn, the same lengths, one
token of every stream in each step, no guesses. Prints one JSON object: output tokens/s of both by round (streams over the mean time
per output token), the median of their ratios, and what the load generator itself took, which shares the processors. Exit status 1 when the
server loses more than --most.

  tests/server/overhead.py [--streams 32] [--generate 256] [--rounds 5] [--most 0.05]
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "clients")]
import weir_server  # noqa: E402
from weir_server import SMOLLM2, Server  # noqa: E402

PROMPT = 16


def run(*arguments: str) -> dict:
    command = [weir_server.WEIR, "bench", *arguments, "--json", "-"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return json.loads(done.stdout)


def engine_rate(options) -> float:
    found = run("engine", str(SMOLLM2), "--batch", str(options.streams), "--prompt", str(PROMPT), "--generate", str(options.generate),
                "--runs", "1")
    return found["results"][0]["decode_tokens_per_s"]


def server_rate(options, server: Server) -> tuple[float, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = run("load", server.url, "--endpoint", "completions", "-c", str(options.streams), "-n", str(options.streams),
                "--isl", str(PROMPT), "--osl", str(options.generate), "--ignore-eos", "--extra", '{"temperature":0}')
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    client = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return options.streams / found["latency"]["tpot_s"]["mean"], client


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--generate", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=float, default=0.05)
    options = parser.parse_args()
    engine, served, clients = [], [], []
    server = Server(f"smollm2={SMOLLM2}", "--no-speculation")
    try:
        for _ in range(options.rounds):
            engine.append(engine_rate(options))
            rate, client = server_rate(options, server)
            served.append(rate)
            clients.append(client)
    finally:
        server.stop()
    loss = 1 - statistics.median(s / e for s, e in zip(served, engine))
    print(json.dumps({"streams": options.streams, "generate": options.generate, "engine_tokens_per_s": [round(r, 1) for r in engine],
                      "server_tokens_per_s": [round(r, 1) for r in served], "loss": round(loss, 4),
                      "load_generator_cpu_s": [round(c, 2) for c in clients]}))
    return 0 if loss <= options.most else 1


if __name__ == "__main__":
    sys.exit(main())
