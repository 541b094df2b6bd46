# SPDX-License-Identifier: Apache-2.0
"""Anthropic's Python client, unchanged: messages, streams, tools, token counts, errors."""

import anthropic

from weir_server import MODEL, ServerTest

ASK = [{"role": "user", "content": "What is the capital of France? Answer in one short sentence."}]
GREEDY = {"extra_body": {"temperature": 0}}  # the client of today has no parameter of that name
WEATHER = {"name": "get_weather", "description": "The weather of a city", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 30}}, "required": ["city"], "additionalProperties": False}}


class Anthropic(ServerTest):
    def setUp(self):
        self.client = anthropic.Anthropic(base_url=self.server.url, api_key="none", max_retries=0, timeout=120)

    def ask(self, **options):
        return self.client.messages.create(**{"model": MODEL, "max_tokens": 24, "messages": ASK, **GREEDY, **options})

    def test_a_message(self):
        answer = self.ask(system="You are a geographer.")
        self.assertEqual((answer.type, answer.role), ("message", "assistant"))
        self.assertIn("Paris", answer.content[0].text)
        self.assertIn(answer.stop_reason, ("end_turn", "max_tokens"))
        self.assertGreater(answer.usage.input_tokens, 10)

    def test_a_stream_is_the_message_in_pieces(self):
        whole = self.ask()
        with self.client.messages.stream(model=MODEL, max_tokens=24, messages=ASK, **GREEDY) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, whole.content[0].text)
        self.assertEqual(final.stop_reason, whole.stop_reason)
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)

    def test_tools_and_their_results(self):
        answer = self.ask(tools=[WEATHER], tool_choice={"type": "any"}, max_tokens=120)
        self.assertEqual(answer.stop_reason, "tool_use")
        use = [block for block in answer.content if block.type == "tool_use"][0]
        self.assertEqual((use.name, list(use.input)), ("get_weather", ["city"]))
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}]}
        more = self.ask(messages=ASK + [{"role": "assistant", "content": [block.model_dump() for block in answer.content]}, result],
                        tools=[WEATHER])
        self.assertTrue(more.content)

    def test_streamed_tool_input(self):
        whole = self.ask(tools=[WEATHER], tool_choice={"type": "tool", "name": "get_weather"}, max_tokens=120)
        with self.client.messages.stream(model=MODEL, max_tokens=120, messages=ASK, **GREEDY, tools=[WEATHER],
                                         tool_choice={"type": "tool", "name": "get_weather"}) as stream:
            final = stream.get_final_message()
        self.assertEqual([b.input for b in final.content if b.type == "tool_use"], [b.input for b in whole.content if b.type == "tool_use"])

    def test_stop_sequences_and_counting(self):
        answer = self.ask(stop_sequences=["Paris"])
        self.assertEqual((answer.stop_reason, answer.stop_sequence), ("stop_sequence", "Paris"))
        count = self.client.messages.count_tokens(model=MODEL, messages=ASK)
        self.assertEqual(count.input_tokens, self.ask().usage.input_tokens)

    def test_errors_have_their_kinds(self):
        with self.assertRaises(anthropic.NotFoundError):
            self.ask(model="no-such-model")
        with self.assertRaises(anthropic.BadRequestError):
            self.ask(extra_body={"temperature": 7})
