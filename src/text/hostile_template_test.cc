// SPDX-License-Identifier: Apache-2.0
// Templates come with models, so none may hang, exhaust or end the process: each of these must come back, as an error or as text.
#include <gtest/gtest.h>

#include <string>

#include "text/chat_template.h"

namespace weir::text {
namespace {

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

Result<std::string> render(const std::string& source, const json::Object& context = {}) {
  auto chat = ChatTemplate::compile(source, "hostile");
  if (!chat) return std::unexpected(chat.error());
  return chat->render(context, 0);
}

void expect_error(const std::string& source, ErrorCode code) {
  auto text = render(source);
  ASSERT_FALSE(text) << source.substr(0, 80) << " gave " << text->substr(0, 80);
  EXPECT_EQ(text.error().code, code) << source.substr(0, 80) << ": " << text.error().message;
}

TEST(HostileTemplate, EndlessWorkRunsOutOfFuel) {
  for (const char* source : {
           "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
           "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}",
           "{% set x = range(100000) | list %}{% for i in x %}{% set y = x | sum %}{% endfor %}",
       })
    expect_error(source, ErrorCode::kExhausted);
}

TEST(HostileTemplate, MemoryIsBounded) {
  for (const char* source : {
           "{{ 'a' * 1000000000000 }}",
           "{% set ns = namespace(s='ab') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
           "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "{% set ns = namespace(s='aa') %}{% for i in range(60) %}{% set ns.s = ns.s.replace('a', ns.s) %}{% endfor %}",
           "{{ 'a\\nb' | indent(10000000000) }}",
           "{{ 'a'.center(10000000000) }}",
           "{{ 'a'.zfill(10000000000) }}",
           "{{ ('x' * 1000000).join(['y'] * 100000) }}",
           "{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
       })
    expect_error(source, ErrorCode::kExhausted);
}

TEST(HostileTemplate, CountsAreBounded) {
  expect_error("{{ range(1000000000000) }}", ErrorCode::kInvalidArgument);
  expect_error("{{ [0] * 1000000000000 }}", ErrorCode::kInvalidArgument);
  expect_error("{{ '{:1000000000000}'.format(1) }}", ErrorCode::kInvalidArgument);
  expect_error("{{ '{:.1000000000f}'.format(1.0) }}", ErrorCode::kInvalidArgument);
  expect_error("{{ '%1000000000d' % 1 }}", ErrorCode::kInvalidArgument);
  expect_error("{{ '%*d' % (1000000000, 1) }}", ErrorCode::kInvalidArgument);
  expect_error("{{ [1] | tojson(indent=1000000000) }}", ErrorCode::kInvalidArgument);
}

TEST(HostileTemplate, NestingIsBounded) {
  const std::string deep = "{% set ns = namespace(s=[]) %}{% for i in range(90000) %}{% set ns.s = [ns.s] %}{% endfor %}";
  for (const char* use : {"", "{{ ns.s }}", "{{ ns.s | tojson }}", "{{ ns.s == [ns.s] }}", "{{ ns.s ~ 'x' }}"})
    expect_error(deep + use, ErrorCode::kExhausted);
  expect_error("{% set ns = namespace(s={}) %}{% for i in range(90000) %}{% set ns.s = {'a': ns.s}.items() %}{% endfor %}",
               ErrorCode::kExhausted);
  expect_error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", ErrorCode::kExhausted);
  expect_error("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", ErrorCode::kExhausted);
}

TEST(HostileTemplate, NothingCanContainItself) {
  expect_error("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", ErrorCode::kInvalidArgument);
  expect_error("{% set ns = namespace() %}{% set ns.a = [{'x': ns}] %}{{ ns == ns.a }}", ErrorCode::kInvalidArgument);
  expect_error("{% set a = namespace() %}{% set b = namespace() %}{% set a.x = b %}{% set b.x = a %}{{ a < b }}",
               ErrorCode::kInvalidArgument);
  expect_error("{% set ns = namespace() %}{% for x in [ns] %}{% set ns.a = loop %}{% endfor %}", ErrorCode::kInvalidArgument);
}

TEST(HostileTemplate, SourcesThatNestOrGoOnTooFarAreRefused) {
  constexpr int kMany = 50'000;
  for (const std::string& source :
       {"{{ " + repeated("(", kMany) + "1" + repeated(")", kMany) + " }}", "{{ " + repeated("not ", kMany) + "1 }}",
        "{{ " + repeated("-", kMany) + "1 }}", "{{ " + repeated("1 + ", kMany) + "1 }}", "{{ a" + repeated(".a", kMany) + " }}",
        "{{ a" + repeated("[0]", kMany) + " }}", "{{ a" + repeated(" | upper", kMany) + " }}",
        "{{ " + repeated("1 if 1 else ", kMany) + "1 }}", "{{ " + repeated("2 ** ", kMany) + "1 }}",
        "{{ a" + repeated(" % a", kMany) + " }}", repeated("{% if 1 %}", kMany),
        "{% if 0 %}" + repeated("{% elif 0 %}", kMany) + "{% endif %}", repeated("{% generation %}", kMany), repeated("{", 2'000'000)}) {
    auto text = render(source);
    if (text) continue;  // what nests not at all may be text
    EXPECT_TRUE(text.error().code == ErrorCode::kExhausted || text.error().code == ErrorCode::kCorrupt) << text.error().message;
  }
}

TEST(HostileTemplate, WhatCannotBeReadIsAnError) {
  EXPECT_EQ(ChatTemplate::compile("{{ '\xff' }}", "bytes").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(ChatTemplate::compile("a\n{% if %}", "syntax").error().code, ErrorCode::kCorrupt);
  EXPECT_NE(ChatTemplate::compile("a\n{% if %}", "syntax").error().message.find("syntax, line 2"), std::string::npos);
  expect_error("{{ 'x' | no_such_filter }}", ErrorCode::kUnsupported);
  expect_error("{{ 'x'.no_such_method() }}", ErrorCode::kUnsupported);
  expect_error("{{ missing.attribute }}", ErrorCode::kInvalidArgument);
  json::Value deep = 1;
  for (int i = 0; i < 200; ++i) deep = json::Array{deep};
  EXPECT_EQ(render("{{ x }}", {{"x", deep}}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::text
