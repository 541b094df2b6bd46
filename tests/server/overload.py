#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What overload does to a server: finds the sustainable rate with a closed loop, offers 95 % of it and then a multiple of it as Poisson
arrivals, and prints one JSON object: rates, statuses, TTFT of accepted requests (from the time they were due), memory. Exit status 1 when
something other than 429 or 503 was refused, when accepted requests waited more than twice as long as at the sustainable rate (p99), or
when memory grew by more than a tenth.

  tests/server/overload.py [--seconds 600] [--factor 2] [--prompt 64] [--generate 32] [--clients 32] [--csv FILE] [-- OPTIONS OF weir serve…]
"""

import argparse
import asyncio
import collections
import json
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]
from load_test import Connection, raise_file_limit  # noqa: E402
from weir_server import MODEL, SMOLLM2, Server  # noqa: E402


def quantile(values, q):
    values = sorted(values)
    return round(1e3 * values[min(len(values) - 1, int(q * len(values)))], 1) if values else None


class Run:
    def __init__(self, server: Server, options):
        self.server, self.options = server, options
        self.random = random.Random(7)
        self.idle: list[Connection] = []
        self.statuses, self.ttft, self.gaps, self.broken = collections.Counter(), [], [], 0

    def body(self):
        tokens = [self.random.randrange(100, 40000) for _ in range(self.options.prompt)]
        return {"model": MODEL, "prompt": tokens, "max_tokens": self.options.generate, "temperature": 0, "ignore_eos": True}

    async def one(self, due: float):
        """A request, on a connection that was used before where there is one: the server may have closed it for idling, so one that
        ends before its answer begins is replaced once."""
        for connection in [*self.idle[-1:], None]:
            if connection is None:
                connection = await Connection.open(self.server.port)
            else:
                self.idle.remove(connection)
            if await self.ask(connection, due):
                return
        self.broken += 1

    async def ask(self, connection: Connection, due: float) -> bool:
        """False when the connection ended before there was a status."""
        sent, status, first, last, done = time.monotonic(), None, None, None, False
        try:
            async for event in connection.stream(self.body()):
                now = time.monotonic()
                if status is None:
                    status = event
                    self.statuses[status] += 1
                elif event == "[DONE]":
                    done = True
                elif last is None:
                    first = last = now
                    self.ttft.append(now - due)
                else:
                    self.gaps.append(now - last)
                    last = now
            broken = status == 200 and not done
        except (OSError, asyncio.IncompleteReadError):
            if status is None:
                return False
            broken = True
        if broken:
            self.broken += 1
        else:
            self.idle.append(connection)
        if self.options.csv:
            print(*(f"{t:.4f}" if t else "" for t in (due, sent, first, last)), status, sep=",", file=self.options.csv)
        return True

    async def closed_loop(self, seconds: float) -> float:
        end, finished = time.monotonic() + seconds, []

        async def client():
            while time.monotonic() < end:
                await self.one(time.monotonic())
                finished.append(time.monotonic())

        await asyncio.gather(*(client() for _ in range(self.options.clients)))
        steady = [t for t in finished if end - seconds / 2 <= t <= end]
        return len(steady) / (seconds / 2)

    async def open_loop(self, rate: float, seconds: float):
        tasks, due = set(), time.monotonic()
        end = due + seconds
        while due < end:
            due += self.random.expovariate(rate)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            task = asyncio.create_task(self.one(due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    def report(self, offered: float) -> dict:
        return {"offered_per_s": round(offered, 2), "statuses": {str(k): v for k, v in sorted(self.statuses.items())}, "broken": self.broken,
                "ttft_ms": {"p50": quantile(self.ttft, .5), "p99": quantile(self.ttft, .99)},
                "gap_ms": {"p50": quantile(self.gaps, .5), "p99": quantile(self.gaps, .99), "max": quantile(self.gaps, 1)},
                "resident_mib": resident(self.server)}


def resident(server: Server) -> int:
    return int(pathlib.Path(f"/proc/{server.process.pid}/status").read_text().split("VmRSS:")[1].split()[0]) // 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--factor", type=float, default=2)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--csv", type=argparse.FileType("w"), help="a line for each request: due, sent, first and last token, status")
    parser.add_argument("serve", nargs="*")
    options = parser.parse_args()
    raise_file_limit(20000)
    server = Server(f"{MODEL}={SMOLLM2}", *options.serve)
    try:
        asyncio.run(Run(server, options).closed_loop(5))
        rate = asyncio.run(Run(server, options).closed_loop(min(30, max(10, options.seconds / 10))))
        result = {"sustainable_per_s": round(rate, 2)}
        for name, factor, seconds in (("at_sustainable", .95, options.seconds / 5), ("overloaded", options.factor, options.seconds)):
            run = Run(server, options)
            asyncio.run(run.open_loop(rate * factor, seconds))
            result[name] = run.report(rate * factor)
        calm, hot = result["at_sustainable"], result["overloaded"]
        refused = set(hot["statuses"]) - {"200", "429", "503"}
        result["holds"] = {"only_429_and_503": not refused and hot["broken"] == 0,
                           "ttft_p99_ratio": round(hot["ttft_ms"]["p99"] / calm["ttft_ms"]["p99"], 2),
                           "memory_ratio": round(hot["resident_mib"] / calm["resident_mib"], 3)}
        print(json.dumps(result))
        held = result["holds"]
        return 0 if held["only_429_and_503"] and held["ttft_p99_ratio"] <= 2 and held["memory_ratio"] <= 1.1 else 1
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
