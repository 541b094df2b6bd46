# SPDX-License-Identifier: Apache-2.0
"""A server for the tests of this folder: one process with the models that the tests name, started by the first test that needs it."""

import atexit
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = os.environ.get("WEIR", str(ROOT / "build/release/weir"))
CACHE = pathlib.Path(os.environ.get("WEIR_TEST_CACHE") or pathlib.Path.home() / ".cache/weir/test-data")
SMOLLM2 = CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf"
MINILM = CACHE / "minilm"
MODEL, EMBEDDER = "smollm2", "minilm"
DATA = ROOT / "tests/data"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """`weir serve` on a port of its own; stop() ends it as a service manager would."""

    def __init__(self, *arguments: str):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = tempfile.NamedTemporaryFile("w+", prefix="weir-serve-", suffix=".log")
        self.process = subprocess.Popen([WEIR, "serve", *arguments, "--listen", f"127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT)
        self.wait_until_ready()

    def wait_until_ready(self, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"weir serve ended with status {self.process.returncode}: {self.output()}")
            try:
                with urllib.request.urlopen(f"{self.url}/health/ready", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.05)
        raise RuntimeError(f"weir serve was not ready after {seconds} s: {self.output()}")

    def output(self) -> str:
        return pathlib.Path(self.log.name).read_text(errors="replace")[-4000:]

    def get(self, path: str):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.loads(answer.read())

    def post(self, path: str, body, headers=None, timeout: float = 120):
        """Status and parsed body, also of errors."""
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


_shared = None


def shared_server() -> Server:
    """The one that most tests use: SmolLM2 and, where its files are here, MiniLM."""
    global _shared
    if _shared is None:
        if not SMOLLM2.exists():
            raise unittest.SkipTest(f"{SMOLLM2.name} is not here: run tools/fetch_test_data.py")
        models = [f"{MODEL}={SMOLLM2}"] + ([f"{EMBEDDER}={MINILM}"] if MINILM.exists() else [])
        _shared = Server(*models)
        atexit.register(_shared.stop)
    elif _shared.process.poll() is not None:
        raise RuntimeError(f"the server has ended with status {_shared.process.returncode}: {_shared.output()}")
    return _shared


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = shared_server()

    def tearDown(self):
        self.assertIsNone(self.server.process.poll(), f"the server is gone: {self.server.output()}")
