# SPDX-License-Identifier: Apache-2.0
"""Every reference schema over HTTP: answers at temperature 1 are valid instances, or the request is refused with the keyword that cannot be
held named. $WEIR_SCHEMA_SEEDS answers each (4)."""

import concurrent.futures
import json
import os

import jsonschema

from weir_server import DATA, MODEL, ServerTest

SEEDS = int(os.environ.get("WEIR_SCHEMA_SEEDS", "4"))
MAX_TOKENS = 600


def keywords(schema) -> set:
    found = set()
    if isinstance(schema, dict):
        found |= set(schema)
        for value in schema.values():
            found |= keywords(value)
    elif isinstance(schema, list):
        for value in schema:
            found |= keywords(value)
    return found


class Schemas(ServerTest):
    def answers(self, case):
        body = {"model": MODEL, "messages": [{"role": "user", "content": "Give a short example."}], "temperature": 1, "seed": 11, "n": SEEDS,
                "max_tokens": MAX_TOKENS,
                "response_format": {"type": "json_schema", "json_schema": {"name": "example", "strict": True, "schema": case["schema"]}}}
        return case, *self.server.post("/v1/chat/completions", body, timeout=900)

    def test_valid_or_refused_by_name(self):
        cases = [json.loads(line) for line in (DATA / "schemas/schemas.jsonl").read_text().splitlines()]
        valid = cut = refused = 0
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for case, status, body in pool.map(self.answers, cases):
                with self.subTest(case["id"]):
                    if status == 400:
                        refused += 1
                        self.assertTrue(any(f"{word}" in body["error"]["message"] for word in keywords(case["schema"])), body)
                        continue
                    self.assertEqual(status, 200, body)
                    checker = jsonschema.Draft202012Validator(case["schema"], format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
                    for choice in body["choices"]:
                        if choice["finish_reason"] == "length":
                            cut += 1
                            continue
                        self.assertEqual(choice["finish_reason"], "stop")
                        checker.validate(json.loads(choice["message"]["content"]))
                        valid += 1
        print(f"{len(cases)} schemas: {valid} valid answers, {cut} cut at {MAX_TOKENS} tokens, {refused} schemas refused by name")
        self.assertGreater(valid, len(cases) * SEEDS / 2)
        self.assertLess(refused, 4)
