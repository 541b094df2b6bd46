# SPDX-License-Identifier: Apache-2.0
"""Ollama's Python client, unchanged."""

import json
import unittest

import ollama

from weir_server import EMBEDDER, MINILM, MODEL, ServerTest

ASK = [{"role": "user", "content": "What is the capital of France? Answer in one short sentence."}]
OPTIONS = {"temperature": 0, "num_predict": 24}


class Ollama(ServerTest):
    def setUp(self):
        self.client = ollama.Client(host=self.server.url, timeout=120)

    def test_models(self):
        self.assertTrue(any(model.model.split(":")[0] == MODEL for model in self.client.list().models))
        self.assertTrue(self.client.show(MODEL))
        self.assertTrue(any(model.model.split(":")[0] == MODEL for model in self.client.ps().models))

    def test_chat_and_its_stream(self):
        whole = self.client.chat(MODEL, ASK, options=OPTIONS)
        self.assertIn("Paris", whole.message.content)
        parts = list(self.client.chat(MODEL, ASK, options=OPTIONS, stream=True))
        self.assertEqual("".join(part.message.content for part in parts), whole.message.content)
        self.assertTrue(parts[-1].done)
        self.assertEqual(parts[-1].eval_count, whole.eval_count)
        self.assertGreater(parts[-1].total_duration, 0)

    def test_generate(self):
        whole = self.client.generate(MODEL, "The capital of France is", raw=True, options={"temperature": 0, "num_predict": 4})
        self.assertIn("Paris", whole.response)
        parts = self.client.generate(MODEL, "The capital of France is", raw=True, options={"temperature": 0, "num_predict": 4}, stream=True)
        self.assertEqual("".join(part.response for part in parts), whole.response)

    def test_a_format(self):
        schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}}, "required": ["name"], "additionalProperties": False}
        answer = self.client.chat(MODEL, ASK, format=schema, options={"temperature": 1, "seed": 3, "num_predict": 100})
        self.assertEqual(list(json.loads(answer.message.content)), ["name"])
        answer = self.client.chat(MODEL, ASK, format="json", options={"temperature": 0, "num_predict": 1000})
        self.assertTrue(answer.message.content.lstrip().startswith("{"))
        if answer.done_reason == "stop":
            json.loads(answer.message.content)

    @unittest.skipUnless(MINILM.exists(), "MiniLM is not here: run tools/fetch_test_data.py")
    def test_embed(self):
        answer = self.client.embed(EMBEDDER, ["a dog", "a cat"])
        self.assertEqual([len(vector) for vector in answer.embeddings], [384, 384])

    def test_a_model_that_is_not_here(self):
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.chat("no-such-model", ASK)
        self.assertEqual(caught.exception.status_code, 404)
