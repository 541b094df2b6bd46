#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of malformed and hostile requests against `weir serve`: each gets the right 4xx, nothing crashes, hangs or leaks, and the next
honest request is answered as before. $WEIR is the program, $WEIR_HOSTILE_REQUESTS their number (5,000), $WEIR_HOSTILE_SEED the seed (1)."""

import collections
import concurrent.futures
import json
import os
import pathlib
import random
import socket
import struct
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))
from weir_server import MODEL, SMOLLM2, Server  # noqa: E402

RELEASE = os.environ.get("WEIR_BUILD", "release") == "release"
COUNT = int(os.environ.get("WEIR_HOSTILE_REQUESTS", "5000" if RELEASE else "600"))
SEED = int(os.environ.get("WEIR_HOSTILE_SEED", "1"))
PATIENCE_S = 30 if RELEASE else 180  # a sanitizer makes honest answers slow
# What an honest but unlucky server may say, beside 4xx: not implemented codings and versions, overload.
ALLOWED_5XX = {501, 503, 505} if RELEASE else {501, 503, 504, 505}  # 504: a sanitizer makes honest answers too slow for their time

MESSAGES = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
BODIES = [
    ("/v1/chat/completions", {"model": MODEL, "messages": MESSAGES, "max_tokens": 2, "temperature": 0.5, "seed": 1, "stop": ["x"]}),
    ("/v1/chat/completions", {"model": MODEL, "messages": MESSAGES, "max_tokens": 2, "stream": True, "stream_options": {"include_usage": True}}),
    ("/v1/chat/completions", {"model": MODEL, "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "max_tokens": 2,
                              "tools": [TOOL], "tool_choice": "auto", "logit_bias": {"5": 1}, "logprobs": True, "top_logprobs": 2}),
    ("/v1/chat/completions", {"model": MODEL, "messages": MESSAGES, "max_tokens": 2, "response_format": {"type": "json_schema", "json_schema": {
        "name": "n", "schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]{1,4}$"}}}}}}),
    ("/v1/completions", {"model": MODEL, "prompt": "Hi", "max_tokens": 2, "echo": True, "logprobs": 1, "n": 1}),
    ("/v1/completions", {"model": MODEL, "prompt": [[1, 2, 3], [4]], "max_tokens": 1, "temperature": 0, "top_k": 3, "min_p": 0.1}),
    ("/v1/responses", {"model": MODEL, "input": "Hi", "max_output_tokens": 2, "temperature": 0}),
    ("/v1/messages", {"model": MODEL, "messages": MESSAGES, "max_tokens": 2}),
    ("/api/chat", {"model": MODEL, "messages": MESSAGES, "stream": False, "options": {"num_predict": 2, "temperature": 0}}),
    ("/api/generate", {"model": MODEL, "prompt": "Hi", "stream": False, "options": {"num_predict": 2}}),
    ("/v1/embeddings", {"model": MODEL, "input": ["a", "b"], "encoding_format": "float"}),
    ("/v1/rerank", {"model": MODEL, "query": "a", "documents": ["b", "c"], "top_n": 1}),
    ("/tokenize", {"model": MODEL, "prompt": "Hi", "add_special_tokens": True}),
    ("/detokenize", {"model": MODEL, "tokens": [1, 2, 3]}),
]
STRANGE = [None, True, -1, 0, 1e308, -1e308, 10**30, 2**63, -2**63 - 1, 0.1, "", "x" * 5000, "\u0000", "\ud800", "🙂" * 50, [], {}, [[]], [None],
           {"a": {"b": {}}}, "../../etc/passwd", "$(reboot)", "%00", "<|im_start|>system", -0.0, 1e-320, [1] * 3000]
NESTED = ["[" * 100_000, "{\"a\":" * 5_000, "[" * 3000 + "]" * 3000, "{\"messages\":" * 200 + "1" + "}" * 200]


def places(value, path=()):
    """All places within a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, path + (key,))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def dumps(value) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()


def request(path: str, body: bytes, extra: bytes = b"", method: bytes = b"POST", kind: bytes = b"application/json") -> bytes:
    head = b"%s %s HTTP/1.1\r\nHost: weir\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n"
    return head % (method, path.encode(), kind, len(body), extra) + body


class Maker:
    """Case by case: the bytes to send, and the statuses that are right (None: any below 500, or an end without an answer)."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.kinds = [self.other_value, self.other_value, self.other_value, self.missing, self.unknown_field, self.broken_json, self.flipped,
                      self.flipped, self.bad_utf8, self.nested, self.huge_number, self.twice, self.not_an_object, self.smuggling, self.smuggling,
                      self.bad_head, self.bad_head, self.bad_chunks, self.cut_body, self.paths, self.methods, self.long_body]

    def case(self):
        make = self.random.choice(self.kinds)
        return make.__name__, *make()

    def seed_case(self):
        path, body = self.random.choice(BODIES)
        return path, body

    def other_value(self):
        path, body = self.seed_case()
        spot = self.random.choice([p for p in places(body) if p])
        return request(path, dumps(replaced(body, spot, self.random.choice(STRANGE)))), None

    def missing(self):
        path, body = self.seed_case()
        body = dict(body)
        del body[self.random.choice(list(body))]
        return request(path, dumps(body)), None

    def unknown_field(self):
        path, body = self.seed_case()
        return request(path, dumps({**body, self.random.choice(["temprature", "Model", "", "max-tokens", "x" * 300]): 1})), {400, 404}

    def broken_json(self):
        path, body = self.seed_case()
        text = dumps(body)
        return request(path, text[:self.random.randrange(len(text))]), {400}

    def flipped(self):
        path, body = self.seed_case()
        text = bytearray(dumps(body))
        for _ in range(self.random.randint(1, 4)):
            text[self.random.randrange(len(text))] = self.random.randrange(256)
        return request(path, bytes(text)), None

    def bad_utf8(self):
        path, body = self.seed_case()
        bad = self.random.choice([b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
        return request(path, dumps({**body, "user": "AB"}).replace(b"AB", bad)), {400}

    def nested(self):
        path, _ = self.seed_case()
        return request(path, self.random.choice(NESTED).encode()), {400}

    def huge_number(self):
        path, body = self.seed_case()
        number = self.random.choice([b"1e999", b"9" * 400, b"-" + b"9" * 50, b"1e-999999", b"0x10", b"NaN", b"Infinity", b"01", b"1.", b".5", b"+1"])
        name = self.random.choice([b"max_tokens", b"temperature", b"seed", b"n", b"top_p"])
        return request(path, dumps(body)[:-1] + b', "' + name + b'": ' + number + b"}"), None

    def twice(self):
        path, body = self.seed_case()
        return request(path, dumps(body)[:-1] + b', "model": 7, "model": "' + MODEL.encode() + b'"}'), None

    def not_an_object(self):
        path, _ = self.seed_case()
        return request(path, self.random.choice([b"", b"null", b"[]", b"1", b'"x"', b" ", b"\xef\xbb\xbf{}", b"{}{}", b"{} x"])), {400}

    def smuggling(self):
        path, body = self.seed_case()
        text = dumps(body)
        inner = b"GET /smuggled HTTP/1.1\r\nHost: weir\r\n\r\n"
        heads = [b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: xchunked\r\n",
                 b"Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding:\x0bchunked\r\n", b" Transfer-Encoding: chunked\r\n",
                 b"X: y\n Transfer-Encoding: chunked\r\n", b"Content-Length: +5\r\n", b"Content-Length: 5, 5\r\n", b"Content-Length: -1\r\n",
                 b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"Content-Length: 18446744073709551617\r\n"]
        return request(path, text, self.random.choice(heads)) + inner, {400, 411, 413, 501}

    def bad_head(self):
        heads = [b"GET /v1/models HTTP/1.1\r\n\r\n", b"GET /v1/models HTTP/9.9\r\nHost: a\r\n\r\n", b"GET  /v1/models HTTP/1.1\r\nHost: a\r\n\r\n",
                 b"GET /v1/models\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 b"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET /v1/models HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n",
                 b"GET /v1/models HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
                 b"GET /v1/models HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-%d: 1\r\n" % i for i in range(2000)) + b"\r\n",
                 b"GET /v1/models HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", b"GET /v1/models HTTP/1.1\nHost: a\n\n",
                 b"G\xc3\x89T /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", b"\r\n\r\n\r\n\r\nnonsense\r\n\r\n", b"GET /v1/models HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
                 b"GET http://[::1/x HTTP/1.1\r\nHost: a\r\n\r\n", b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", bytes(self.random.randrange(256) for _ in range(300)) + b"\r\n\r\n"]
        return self.random.choice(heads), {400, 404, 405, 408, 414, 421, 431, 501, 505}

    def bad_chunks(self):
        path, body = self.seed_case()
        text = dumps(body)
        head = b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" % path.encode()
        chunks = [b"ffffffffffffffffff\r\nx\r\n0\r\n\r\n", b"-1\r\nx\r\n0\r\n\r\n", b"zz\r\n", b"5\r\nabc\r\n0\r\n\r\n", b"%x\r\n%s0\r\n\r\n" % (len(text), text),
                  b"%x;%s\r\n" % (len(text), b"e" * 50_000), b"7fffffff\r\n" + text, b"0x5\r\nabcde\r\n0\r\n\r\n", b"5 \r\nabcde\r\n0\r\n\r\n",
                  b"1\r\n{\r\n" * 100 + b"0\r\n\r\n", b"0\r\nTrailer: " + b"x" * 100_000 + b"\r\n\r\n"]
        return head + self.random.choice(chunks), {400, 408, 413, 431, None, "end"}

    def cut_body(self):
        path, body = self.seed_case()
        whole = request(path, dumps(body))
        return whole[:self.random.randrange(10, len(whole))], "cut"

    def paths(self):
        path = self.random.choice(["/", "/v1/../../etc/passwd", "/v1/models/..%2f..%2fetc%2fpasswd", "/v1/models/%00", "/v1/models/%zz", "/%2e%2e/", "//",
                                   "/v1/models/no-such-model", "/v1/files", "/admin", "/v1/responses/nothing", "/v1/models/" + "a" * 3000])
        return b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path.encode(), {400, 404, 405, 414}

    def methods(self):
        path, body = self.seed_case()
        method = self.random.choice([b"PUT", b"DELETE", b"PATCH", b"TRACE", b"get", b"FOO", b"GET"])
        return request(path, dumps(body), method=method), {400, 404, 405, 501}

    def long_body(self):
        path, _ = self.seed_case()
        return (b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
                (path.encode(), self.random.choice([10**10, 10**12, 2**40])) + b"{", {413})


def status_of(answer: bytes):
    parts = answer.split(b" ", 2)
    return int(parts[1]) if len(parts) > 2 and parts[0].startswith(b"HTTP/") and parts[1].isdigit() else None


def send(port: int, data: bytes, cut: bool, reset: bool):
    """What came back until the head's end; None when the connection ended without an answer; "hang" when nothing happened in time."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as s:
        try:
            s.sendall(data)
            if reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return None
            if cut:
                s.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all was sent: the answer may be there all the same
        answer = b""
        try:
            while b"\r\n\r\n" not in answer:
                piece = s.recv(65536)
                if not piece:
                    break
                answer += piece
        except ConnectionResetError:
            pass
        except TimeoutError:
            return "hang"
        return answer or None


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not SMOLLM2.exists():
            raise unittest.SkipTest(f"{SMOLLM2.name} is not here: run tools/fetch_test_data.py")
        cls.server = Server(f"{MODEL}={SMOLLM2}", "--context", "512")  # no honest answer takes long

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, "the server did not end well"

    def honest(self):
        status, body = self.server.post("/v1/chat/completions", {"model": MODEL, "messages": MESSAGES, "max_tokens": 4, "temperature": 0})
        self.assertEqual(status, 200, body)
        return body["choices"][0]["message"]["content"]

    def resident(self):
        text = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) // 1024

    def files(self):
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def check(self, name, data, right, problems, seen, random_):
        reset = right == "cut" and random_.random() < 0.5
        # Where the server may wait for more, the client says that there is none.
        ends = right == "cut" or (isinstance(right, set) and "end" in right)
        answer = send(self.server.port, data, ends, reset)
        if reset:
            return
        status = None if answer is None else answer if answer == "hang" else status_of(answer)
        seen[name, status] += 1
        wrong = status == "hang" or (isinstance(status, int) and status >= 500 and status not in ALLOWED_5XX)
        if isinstance(right, set):
            wrong = wrong or (status not in right and not (isinstance(status, int) and status in ALLOWED_5XX & {503, 504}))
        if wrong:
            problems.append((name, status, data[:300], (answer or b"")[:200] if isinstance(answer, bytes) else answer))

    def test_thousands_of_hostile_requests(self):
        before = self.honest()
        maker, order = Maker(SEED), random.Random(SEED + 1)
        cases = [maker.case() for _ in range(COUNT)]
        problems, seen = [], collections.Counter()
        memory = None
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for first in range(0, len(cases), 250):
                list(pool.map(lambda case: self.check(*case, problems, seen, order), cases[first:first + 250]))
                self.assertIsNone(self.server.process.poll(), f"the server is gone after {first} cases: {self.server.output()}")
                self.assertEqual(self.honest(), before)
                if os.environ.get("WEIR_HOSTILE_VERBOSE"):
                    print(first, self.resident(), "MiB,", self.files(), "files", file=sys.stderr)
                if memory is None and first >= COUNT // 2:
                    memory, files = self.resident(), self.files()
        for problem in problems[:20]:
            print(problem, file=sys.stderr)
        print(f"{len(cases)} requests: " + ", ".join(f"{status}: {n}" for status, n in sorted(
            collections.Counter(str(s) for (_, s), c in seen.items() for _ in range(c)).items())), file=sys.stderr)
        self.assertFalse(problems, f"{len(problems)} of {len(cases)}")
        if memory is not None and RELEASE:
            self.assertLess(self.resident(), memory + 128, "MiB of memory: it grows")
            self.assertLess(self.files(), files + 40, "open files: they are not closed")

    def test_slow_clients_hold_nobody_up(self):
        """Fifty that send a byte a second: the others are answered meanwhile, and the slow ones are sent away."""
        before = self.honest()
        slow = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(50)]
        ended = []

        def trickle(s):
            try:
                for byte in b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-Slow: " + b"y" * 60:
                    s.sendall(bytes([byte]))
                    s.settimeout(1)
                    try:
                        if s.recv(4096) is not None:
                            ended.append(s)
                            return
                    except TimeoutError:
                        pass
            except OSError:
                ended.append(s)

        threads = [threading.Thread(target=trickle, args=(s,), daemon=True) for s in slow]
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        while any(thread.is_alive() for thread in threads) and time.monotonic() - begin < 60:
            self.assertEqual(self.honest(), before)
            time.sleep(0.5)
        self.assertEqual(len(ended), len(slow), "slow clients that the server still waits for")
        for s in slow:
            s.close()


if __name__ == "__main__":
    unittest.main()
