# SPDX-License-Identifier: Apache-2.0
"""LiteLLM by way of its OpenAI and Anthropic providers."""

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look at the network

import litellm

from weir_server import MODEL, ServerTest

ASK = [{"role": "user", "content": "What is the capital of France? Answer in one short sentence."}]


class LiteLlm(ServerTest):
    def ask(self, provider, base, **options):
        return litellm.completion(model=f"{provider}/{MODEL}", api_base=base, api_key="none", messages=ASK, max_tokens=24, temperature=0,
                                  num_retries=0, **options)

    def test_the_same_answer_through_both_providers_and_streams(self):
        texts = set()
        for provider, base in (("openai", self.server.url + "/v1"), ("anthropic", self.server.url)):
            texts.add(self.ask(provider, base).choices[0].message.content)
            texts.add("".join(chunk.choices[0].delta.content or "" for chunk in self.ask(provider, base, stream=True)))
        self.assertEqual(len(texts), 1)
        self.assertIn("Paris", texts.pop())

    def test_text_completion(self):
        answer = litellm.text_completion(model=f"text-completion-openai/{MODEL}", api_base=self.server.url + "/v1", api_key="none",
                                         prompt="The capital of France is", max_tokens=4, temperature=0)
        self.assertIn("Paris", answer.choices[0].text)

    def test_an_error_is_theirs(self):
        with self.assertRaises(litellm.NotFoundError):
            litellm.completion(model="openai/no-such-model", api_base=self.server.url + "/v1", api_key="none", messages=ASK, num_retries=0)
