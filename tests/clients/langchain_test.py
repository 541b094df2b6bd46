# SPDX-License-Identifier: Apache-2.0
"""langchain-openai: chat, streams, bound tools, structured output."""

from typing import Annotated

import pydantic
from langchain_openai import ChatOpenAI

from weir_server import MODEL, ServerTest

QUESTION = "What is the capital of France? Answer in one short sentence."


class LangChain(ServerTest):
    def chat(self, **options):
        return ChatOpenAI(**{"model": MODEL, "base_url": self.server.url + "/v1", "api_key": "none", "temperature": 0, "max_tokens": 24,
                             "max_retries": 0, **options})

    def test_an_answer_and_its_stream(self):
        answer = self.chat().invoke(QUESTION)
        self.assertIn("Paris", answer.content)
        self.assertGreater(answer.usage_metadata["output_tokens"], 0)
        self.assertEqual("".join(chunk.content for chunk in self.chat().stream(QUESTION)), answer.content)

    def test_a_bound_tool(self):
        def get_weather(city: Annotated[str, pydantic.Field(max_length=30)]) -> str:
            """The weather of a city."""
            return "sunny"
        answer = self.chat(max_tokens=150).bind_tools([get_weather], tool_choice="any", strict=True).invoke("Weather in Rome?")
        self.assertEqual(answer.tool_calls[0]["name"], "get_weather")
        self.assertEqual(list(answer.tool_calls[0]["args"]), ["city"])

    def test_structured_output(self):
        class City(pydantic.BaseModel):
            name: str = pydantic.Field(max_length=20)
            capital: bool
        for method in ("json_schema", "function_calling"):
            answer = self.chat(max_tokens=200).with_structured_output(City, method=method, strict=True).invoke(QUESTION)
            self.assertIsInstance(answer, City, method)

    def test_the_responses_api(self):
        answer = self.chat(use_responses_api=True).invoke(QUESTION)
        self.assertIn("Paris", answer.text if isinstance(answer.text, str) else answer.text())
