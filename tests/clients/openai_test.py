# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Python client, unchanged: chat, streams, structured outputs, tools, completions, responses, embeddings, errors."""

import asyncio
import json
import math
import unittest

import openai
import pydantic

from weir_server import EMBEDDER, MINILM, MODEL, ServerTest

ASK = [{"role": "user", "content": "What is the capital of France? Answer in one short sentence."}]
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city", "strict": True, "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 30}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"], "additionalProperties": False}}}


class OpenAi(ServerTest):
    def setUp(self):
        self.client = openai.OpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=0, timeout=120)

    def chat(self, **options):
        return self.client.chat.completions.create(**{"model": MODEL, "messages": ASK, "max_tokens": 24, "temperature": 0, **options})

    def test_models(self):
        self.assertIn(MODEL, [model.id for model in self.client.models.list()])
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)

    def test_an_answer_and_its_usage(self):
        answer = self.chat()
        self.assertIn("Paris", answer.choices[0].message.content)
        self.assertIn(answer.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertEqual(answer.object, "chat.completion")

    def test_a_stream_is_the_answer_in_pieces(self):
        whole = self.chat()
        pieces, usage, reasons = [], None, []
        for chunk in self.chat(stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                pieces.append(choice.delta.content or "")
                if choice.finish_reason:
                    reasons.append(choice.finish_reason)
        self.assertEqual("".join(pieces), whole.choices[0].message.content)
        self.assertEqual(reasons, [whole.choices[0].finish_reason])
        self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)
        self.assertGreater(len(pieces), 3)

    def test_same_seed_same_text_and_n_answers(self):
        def texts(seed):
            answer = self.chat(messages=[{"role": "user", "content": "Tell me a story."}], temperature=1, seed=seed, n=3)
            return [choice.message.content for choice in answer.choices]
        first = texts(7)
        self.assertEqual(first, texts(7))
        self.assertNotEqual(first, texts(8))
        self.assertEqual(len(set(first)), 3)

    def test_logprobs(self):
        answer = self.chat(logprobs=True, top_logprobs=3)
        entries = answer.choices[0].logprobs.content
        self.assertEqual(len(entries), answer.usage.completion_tokens - (answer.choices[0].finish_reason == "stop"))
        for entry in entries:
            self.assertEqual(len(entry.top_logprobs), 3)
            self.assertEqual(entry.token, entry.top_logprobs[0].token)  # greedy
            self.assertLessEqual(entry.logprob, 0)
        self.assertEqual(b"".join(bytes(entry.bytes) for entry in entries).decode(), answer.choices[0].message.content)

    def test_stop_and_length(self):
        self.assertEqual(self.chat(max_tokens=1).choices[0].finish_reason, "length")
        answer = self.chat(stop=["Paris"])
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertNotIn("Paris", answer.choices[0].message.content)

    def test_structured_outputs_through_the_clients_own_parser(self):
        class City(pydantic.BaseModel):
            name: str = pydantic.Field(max_length=20)
            inhabitants: int = pydantic.Field(ge=0, lt=100_000_000)
            capital: bool
        for seed in range(3):
            answer = self.client.chat.completions.parse(model=MODEL, messages=ASK, response_format=City, temperature=1, seed=seed,
                                                        max_tokens=200)
            self.assertIsInstance(answer.choices[0].message.parsed, City)

    def test_json_object(self):
        for seed in range(4):
            choice = self.chat(response_format={"type": "json_object"}, max_tokens=150, temperature=1, seed=seed).choices[0]
            self.assertTrue(choice.message.content.lstrip().startswith("{"))
            if choice.finish_reason != "length":  # whether a text of this model ends before is chance
                self.assertIsInstance(json.loads(choice.message.content), dict)
        # One that ends whatever the model would write: the first brace is forced, the second is the best of what may follow it.
        _, closing = self.server.post("/tokenize", {"model": MODEL, "prompt": "}", "add_special_tokens": False})
        bias = {str(closing["tokens"][0]): 100}
        forced = self.chat(response_format={"type": "json_object"}, max_tokens=20, logit_bias=bias).choices[0]
        self.assertEqual((forced.finish_reason, json.loads(forced.message.content)), ("stop", {}))

    def test_a_schema_that_cannot_be_held_is_refused(self):
        schema = {"type": "object", "properties": {"a": {"type": "array", "contains": {"const": 1}}}}
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}})
        self.assertIn("contains", caught.exception.message)

    def test_tools_that_must_be_called(self):
        answer = self.chat(tools=[WEATHER], tool_choice="required", max_tokens=120)
        call = answer.choices[0].message.tool_calls[0]
        self.assertEqual(call.function.name, "get_weather")
        arguments = json.loads(call.function.arguments)
        self.assertEqual(sorted(arguments), ["city", "unit"])
        self.assertIn(arguments["unit"], ("celsius", "fahrenheit"))
        self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
        named = self.chat(tools=[WEATHER], tool_choice={"type": "function", "function": {"name": "get_weather"}}, max_tokens=120)
        self.assertEqual(named.choices[0].message.tool_calls[0].function.name, "get_weather")
        messages = ASK + [answer.choices[0].message.model_dump(exclude_none=True),
                          {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        self.assertTrue(self.chat(messages=messages, tools=[WEATHER]).choices[0].finish_reason)

    def test_streamed_calls_are_those_of_the_document(self):
        whole = self.chat(tools=[WEATHER], tool_choice="required", max_tokens=120).choices[0].message.tool_calls
        calls, content = {}, ""
        for chunk in self.chat(tools=[WEATHER], tool_choice="required", max_tokens=120, stream=True):
            for choice in chunk.choices:
                content += choice.delta.content or ""
                for part in choice.delta.tool_calls or []:
                    call = calls.setdefault(part.index, {"id": part.id, "name": "", "arguments": ""})
                    call["name"] += part.function.name or ""
                    call["arguments"] += part.function.arguments or ""
        self.assertEqual([(call["name"], call["arguments"]) for call in calls.values()],
                         [(call.function.name, call.function.arguments) for call in whole])
        self.assertEqual(content.strip(), "")

    def test_completions_with_echo_and_logprobs(self):
        answer = self.client.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=4, temperature=0, logprobs=2,
                                                echo=True)
        choice = answer.choices[0]
        self.assertTrue(choice.text.startswith("The capital of France is"))
        self.assertIn("Paris", choice.text)
        self.assertEqual(len(choice.logprobs.tokens), len(choice.logprobs.token_logprobs))
        self.assertIsNone(choice.logprobs.token_logprobs[0])
        self.assertTrue(all(value <= 0 for value in choice.logprobs.token_logprobs[1:]))
        offsets = choice.logprobs.text_offset
        pieces = [choice.text[begin:end] for begin, end in zip(offsets, offsets[1:] + [len(choice.text)])]
        self.assertEqual("".join(pieces), choice.text)
        # Names are the vocabulary's own: a byte-level one writes the space before a word as a letter.
        self.assertEqual([name.replace("\u0120", " ").replace("\u010a", "\n") for name in choice.logprobs.tokens], pieces)

    def test_batches_of_prompts(self):
        prompts = ["One, two,", "The sky is", "Once upon a"]
        answer = self.client.completions.create(model=MODEL, prompt=prompts, max_tokens=6, temperature=0, n=2)
        self.assertEqual([choice.index for choice in answer.choices], list(range(6)))
        alone = self.client.completions.create(model=MODEL, prompt=prompts[1], max_tokens=6, temperature=0)
        self.assertEqual(answer.choices[2].text, alone.choices[0].text)

    def test_responses(self):
        answer = self.client.responses.create(model=MODEL, input=ASK[0]["content"], max_output_tokens=24, temperature=0)
        self.assertIn("Paris", answer.output_text)
        more = self.client.responses.create(model=MODEL, input="And of Italy?", previous_response_id=answer.id, max_output_tokens=16,
                                            temperature=0)
        self.assertGreater(more.usage.input_tokens, answer.usage.input_tokens)
        self.assertEqual(self.client.responses.retrieve(answer.id).output_text, answer.output_text)
        events = list(self.client.responses.create(model=MODEL, input=ASK[0]["content"], max_output_tokens=24,
                                                   temperature=0, stream=True))
        self.assertEqual("".join(event.delta for event in events if event.type == "response.output_text.delta"), answer.output_text)
        self.assertEqual(events[0].type, "response.created")
        self.assertIn(events[-1].type, ("response.completed", "response.incomplete"))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))

    def test_responses_call_tools(self):
        tool = {"type": "function", **WEATHER["function"]}
        answer = self.client.responses.create(model=MODEL, input="Weather in Rome?", tools=[tool], tool_choice="required", temperature=0,
                                              max_output_tokens=120)
        calls = [item for item in answer.output if item.type == "function_call"]
        self.assertEqual(calls[0].name, "get_weather")
        json.loads(calls[0].arguments)

    @unittest.skipUnless(MINILM.exists(), "MiniLM is not here: run tools/fetch_test_data.py")
    def test_embeddings(self):
        answer = self.client.embeddings.create(model=EMBEDDER, input=["a dog", "a puppy", "tax law"])  # base64 on the wire
        plain = self.client.embeddings.create(model=EMBEDDER, input=["a dog"], encoding_format="float")
        one, other, third = (entry.embedding for entry in answer.data)
        self.assertEqual(len(one), 384)
        self.assertTrue(all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7) for a, b in zip(one, plain.data[0].embedding)))
        product = lambda a, b: sum(x * y for x, y in zip(a, b))
        self.assertGreater(product(one, other), product(one, third))

    def test_errors_have_their_kinds(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.chat(model="no-such-model")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature=-1)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(messages=[{"role": "user", "content": "word " * 20000}])
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError):
            self.client.completions.create(model=MODEL, prompt="a", suffix="b")

    def test_thirty_two_streams_get_what_each_gets_alone(self):
        client = openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=0, timeout=300)

        async def ask(number):
            stream = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": f"Say something about {number}."}],
                                                          max_tokens=24, temperature=number % 2, seed=number, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

        async def all_of_them():
            together = await asyncio.gather(*(ask(i) for i in range(32)))
            for i in (0, 1, 17, 30):
                self.assertEqual(await ask(i), together[i])

        asyncio.run(all_of_them())

    def test_a_client_that_goes_away_leaves_nothing_behind(self):
        stream = self.chat(max_tokens=2000, stream=True, messages=[{"role": "user", "content": "Count to a million."}],
                           extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        for _ in range(200):
            text = self.server_metrics()
            if "\nvllm:num_requests_running{" in text and all(
                    line.endswith(" 0") for line in text.splitlines() if line.startswith("vllm:num_requests_running{")):
                return
            asyncio.run(asyncio.sleep(0.02))
        self.fail("still running")

    def server_metrics(self):
        import urllib.request
        with urllib.request.urlopen(self.server.url + "/metrics", timeout=10) as answer:
            return answer.read().decode()


if __name__ == "__main__":
    unittest.main()
