#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many connections and hard ends, from outside: thousands of kept connections beside hundreds of streams, clients killed in mid-stream, a
server told to stop under load. $WEIR is the program."""

import asyncio
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
from weir_server import MODEL, SMOLLM2, Server  # noqa: E402

FULL = os.environ.get("WEIR_BUILD", "release") == "release"
CONNECTIONS, STREAMS = (2000, 256) if FULL else (300, 32)
PATIENCE_S = 300


def raise_file_limit(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


class Connection:
    """A kept HTTP/1.1 connection, by hand, so that thousands are cheap."""

    @classmethod
    async def open(cls, port: int):
        self = cls()
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        return self

    async def head(self):
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        return int(lines[0].split()[1]), {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}

    async def get(self, path: str):
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        status, headers = await self.head()
        return status, await self.reader.readexactly(int(headers["content-length"]))

    async def stream(self, body: dict):
        """Yields the events of a streamed answer; the first item is the status."""
        data = json.dumps({**body, "stream": True}).encode()
        self.writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
                          len(data) + data)
        status, headers = await self.head()
        yield status
        if headers.get("transfer-encoding") != "chunked":
            await self.reader.readexactly(int(headers.get("content-length", 0)))
            return
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            chunk = await self.reader.readexactly(size)
            await self.reader.readexactly(2)
            for line in chunk.decode().split("\n"):
                if line.startswith("data: "):
                    yield line[6:]
        await self.reader.readexactly(2)

    def close(self):
        self.writer.close()


def prompt(number: int, tokens: int) -> dict:
    return {"model": MODEL, "prompt": f"Number {number}: once upon a time", "max_tokens": tokens, "temperature": 0, "ignore_eos": True}


async def whole(connection: Connection, body: dict):
    """Text and whether the stream came to its regular end."""
    text, done, status = "", False, None
    async for event in connection.stream(body):
        if status is None:
            status = event
        elif event == "[DONE]":
            done = True
        else:
            for choice in json.loads(event).get("choices", []):
                text += choice["text"]
    return status, text, done


class Load(unittest.TestCase):
    def setUp(self):
        if not SMOLLM2.exists():
            self.skipTest(f"{SMOLLM2.name} is not here: run tools/fetch_test_data.py")
        raise_file_limit(2 * CONNECTIONS + 500)
        self.server = Server(f"{MODEL}={SMOLLM2}")

    def tearDown(self):
        self.server.stop()

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(self.server.url + "/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        values = [float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name]
        self.assertTrue(values, f"no metric {name}")
        return sum(values)

    def wait_for_rest(self, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while self.metric("vllm:num_requests_running") + self.metric("vllm:num_requests_waiting") > 0:
            self.assertLess(time.monotonic(), end, "requests go on that nobody waits for")
            time.sleep(0.02)

    def test_thousands_of_connections_and_hundreds_of_streams(self):
        async def run():
            idle = []
            for first in range(0, CONNECTIONS - STREAMS, 100):
                idle += await asyncio.gather(*(Connection.open(self.server.port) for _ in range(min(100, CONNECTIONS - STREAMS - first))))
            for status, _ in await asyncio.gather(*(c.get("/health/live") for c in idle)):
                self.assertEqual(status, 200)
            streaming = await asyncio.gather(*(Connection.open(self.server.port) for _ in range(STREAMS)))
            answers = await asyncio.gather(*(whole(c, prompt(i, 8)) for i, c in enumerate(streaming)))
            for number, (status, text, done) in enumerate(answers):
                self.assertEqual((status, done), (200, True), number)
            # All are still there, and used again.
            for status, _ in await asyncio.gather(*(c.get("/health/ready") for c in idle + list(streaming))):
                self.assertEqual(status, 200)
            for number in (0, STREAMS // 2, STREAMS - 1):  # neighbours change nothing
                self.assertEqual((await whole(streaming[number], prompt(number, 8)))[1], answers[number][1])
            for c in idle + list(streaming):
                c.close()
        asyncio.run(asyncio.wait_for(run(), PATIENCE_S))

    def test_killed_clients_free_their_blocks(self):
        script = ("import sys, urllib.request, json\n"
                  f"r = urllib.request.Request({self.server.url!r} + '/v1/completions', json.dumps({{**{prompt(1, 4000)!r}, 'stream': True}}).encode(),"
                  " {'Content-Type': 'application/json'})\n"
                  "for line in urllib.request.urlopen(r): print('.', flush=True)\n")
        clients = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(3)]
        for client in clients:
            client.stdout.read(2)
        self.assertGreaterEqual(self.metric("vllm:num_requests_running"), 1)
        for client in clients:
            client.send_signal(signal.SIGKILL)
            client.wait()
            client.stdout.close()
        self.wait_for_rest()

    def test_told_to_stop_it_finishes_what_it_accepted(self):
        async def run():
            connections = await asyncio.gather(*(Connection.open(self.server.port) for _ in range(16)))
            streams = [asyncio.create_task(whole(c, prompt(i, 60))) for i, c in enumerate(connections)]
            while self.metric("vllm:generation_tokens_total") < 16:
                await asyncio.sleep(0.01)
            self.server.process.send_signal(signal.SIGTERM)
            for number, (status, text, done) in enumerate(await asyncio.gather(*streams)):
                self.assertEqual((status, done), (200, True), number)
                self.assertGreater(len(text), 60, number)
            for c in connections:
                c.close()
        asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
        self.assertEqual(self.server.process.wait(60), 0, self.server.output())


if __name__ == "__main__":
    unittest.main()
