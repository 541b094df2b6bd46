// SPDX-License-Identifier: Apache-2.0
// JSON schemas, those of the reference data first: whatever a random model writes within a grammar is an instance, instances are let
// through, others are not, and what cannot be enforced is refused by name.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "grammar/random_answer_test.h"
#include "grammar/schema_validator_test.h"
#include "grammar/testing_vocabulary.h"

namespace weir::grammar {
namespace {

using ::testing::HasSubstr;
using testing::is_valid;

constexpr std::uint64_t kSeeds = 20;

std::vector<json::Value> reference_cases() {
  std::vector<json::Value> cases;
  std::ifstream file(weir::testing::data_path("schemas/schemas.jsonl"));
  for (std::string line; std::getline(file, line);) cases.push_back(*json::parse(line, "case"));
  return cases;
}

// As a model would write it: numbers without exponent.
std::string written(const json::Value& value) {
  if (value.is_double()) return fmt::format("{}", value.get_double());
  return boost::json::serialize(value);
}

GrammarSpec spec_of(const json::Value& schema) { return {.kind = GrammarKind::kJsonSchema, .text = boost::json::serialize(schema)}; }

Result<std::shared_ptr<const Grammar>> compile_schema(std::string_view schema) {
  return compile({.kind = GrammarKind::kJsonSchema, .text = std::string(schema)}, testing::smollm2_vocabulary());
}

// The whole text is let through and may end.
bool takes(const std::shared_ptr<const Grammar>& grammar, const std::string& text) {
  auto matcher = Matcher::create(grammar);
  return matcher && testing::accept_text(*matcher, text) && matcher->may_end().value_or(false);
}

// Properties come in the schema's order, so an object is let through when one order of its members is.
bool takes_some_order(const std::shared_ptr<const Grammar>& grammar, const json::Value& value) {
  if (takes(grammar, written(value))) return true;
  if (!value.is_object()) return false;
  std::vector<std::string> names;
  for (const auto& member : value.get_object()) names.emplace_back(member.key());
  std::ranges::sort(names);
  do {
    json::Object ordered;
    for (const std::string& name : names) ordered[name] = value.get_object().at(name);
    if (takes(grammar, boost::json::serialize(ordered))) return true;
  } while (std::ranges::next_permutation(names).found);
  return false;
}

// Counts the whole answers of a random model; each must be an instance.
int check_random_answers(const std::shared_ptr<const Grammar>& grammar, const json::Value& schema, std::uint64_t seeds) {
  int whole = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    auto matcher = Matcher::create(grammar);
    const auto answer = testing::random_answer(*matcher, seed);
    if (!answer) {
      ADD_FAILURE() << "seed " << seed << ": " << answer.error().message;
      continue;
    }
    if (!answer->whole) continue;
    ++whole;
    const auto value = json::parse(answer->text, "answer");
    EXPECT_TRUE(value && is_valid(*value, schema, schema)) << "seed " << seed << ": " << answer->text;
  }
  return whole;
}

TEST(SchemaValidator, AgreesWithTheReferenceData) {
  const auto cases = reference_cases();
  ASSERT_EQ(cases.size(), 38u);
  for (const json::Value& one : cases) {
    const json::Value& schema = one.at("schema");
    for (const json::Value& value : one.at("valid").get_array()) EXPECT_TRUE(is_valid(value, schema, schema)) << one.at("id") << value;
    for (const json::Value& value : one.at("invalid").get_array()) EXPECT_FALSE(is_valid(value, schema, schema)) << one.at("id") << value;
  }
}

TEST(JsonSchema, EveryReferenceCaseIsEnforcedOrRefusedByName) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  const std::map<std::string, std::string> refused{{"contains", "\"contains\""}, {"if-then", "\"if\""}};
  for (const json::Value& one : reference_cases()) {
    const std::string id(one.at("id").get_string());
    SCOPED_TRACE(id);
    const auto grammar = compile(spec_of(one.at("schema")), testing::smollm2_vocabulary());
    if (refused.contains(id)) {
      ASSERT_FALSE(grammar);
      EXPECT_EQ(grammar.error().code, ErrorCode::kUnsupported);
      EXPECT_THAT(grammar.error().message, HasSubstr(refused.at(id)));
      continue;
    }
    ASSERT_TRUE(grammar) << grammar.error().message;
    EXPECT_GE(check_random_answers(*grammar, one.at("schema"), kSeeds), static_cast<int>(kSeeds) - 4);
    for (const json::Value& value : one.at("valid").get_array()) EXPECT_TRUE(takes_some_order(*grammar, value)) << value;
    for (const json::Value& value : one.at("invalid").get_array()) EXPECT_FALSE(takes_some_order(*grammar, value)) << value;
  }
}

// What is let through beyond the reference data, each judged by the validator.
TEST(JsonSchema, RandomAnswersAreInstances) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  const std::vector<std::string> schemas{
      R"({"type":"number","exclusiveMinimum":0.1,"exclusiveMaximum":0.2})",
      R"({"type":"number","minimum":-2.5,"maximum":1e3})",
      R"({"type":"number","exclusiveMaximum":-7})",
      R"({"type":"integer","exclusiveMinimum":2.5,"maximum":12})",
      R"({"type":"integer","minimum":-1000000000000000,"maximum":1000000000000000})",
      R"({"type":"integer","multipleOf":7,"minimum":-100,"maximum":500})",
      R"({"type":"number","multipleOf":0.25,"minimum":0,"maximum":9})",
      R"({"enum":[1,-2.5,0.1,1e-7,123456789012345,null,true,["a",{"b":1}]]})",
      R"({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"string"}})",
      R"({"type":"object","required":["x","y"],"properties":{"y":{"const":1}},"minProperties":3})",
      R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"additionalProperties":false,"minProperties":1})",
      R"({"type":"object","additionalProperties":{"type":"boolean"},"minProperties":1,"maxProperties":2})",
      R"({"type":"object","propertyNames":{"pattern":"^[a-z]{1,3}$"},"additionalProperties":{"type":"integer"}})",
      R"({"type":"object","propertyNames":{"enum":["north","south"]}})",
      R"({"type":"object","properties":{"card":{"type":"integer"},"bill":{"type":"string","maxLength":5}},"additionalProperties":false,
          "dependentRequired":{"card":["bill"]}})",
      R"({"type":"object","patternProperties":{"^a":{"type":"integer"},"^b":{"type":"string"}},"additionalProperties":false})",
      R"({"oneOf":[{"type":"integer"},{"type":"object","required":["k"],"properties":{"k":{"const":"v"}}}]})",
      R"({"oneOf":[{"$ref":"#/$defs/cat"},{"$ref":"#/$defs/dog"}],"$defs":{
          "cat":{"type":"object","properties":{"kind":{"const":"cat"},"lives":{"type":"integer","minimum":1,"maximum":9}},
                 "required":["kind","lives"],"additionalProperties":false},
          "dog":{"type":"object","properties":{"kind":{"const":"dog"},"name":{"type":"string","minLength":1,"maxLength":6}},
                 "required":["kind","name"],"additionalProperties":false}}})",
      R"({"type":"object","properties":{"v":{"type":"integer"},"next":{"oneOf":[{"$ref":"#"},{"type":"null"}]}},
          "required":["v","next"],"additionalProperties":false})",
      R"({"allOf":[{"minimum":3},{"maximum":8}],"type":"integer"})",
      R"({"allOf":[{"anyOf":[{"type":"string"},{"type":"integer"}]},{"anyOf":[{"type":"integer"},{"type":"boolean"}]}]})",
      R"({"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true,"minItems":2})",
      R"({"type":"array","items":[{"type":"integer"}],"additionalItems":{"type":"boolean"},"minItems":2,"maxItems":4})",
      R"({"type":"array","contains":true})",
      R"({"type":"string","pattern":"^(a|b)+\\d{2,3}[^x-z]$","maxLength":9})",
      R"({"type":"string","pattern":"a.c","maxLength":12})",
      R"({"type":"string","format":"date","pattern":"^2"})",
      R"({"type":"string","format":"time"})",
      R"({"type":"string","format":"ipv4"})",
      R"({"type":"string","format":"uuid"})",
      R"({"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"type":"integer","title":"odd name"}}})",
      R"({"$ref":"#here","$defs":{"x":{"$anchor":"here","enum":["anchored"]}}})",
      R"({"type":"object","properties":{"quote\"d\\":{"type":"integer"},"tab\t":{"type":"null"}},"required":["quote\"d\\","tab\t"],
          "additionalProperties":false})",
  };
  for (const std::string& text : schemas) {
    SCOPED_TRACE(text);
    const auto grammar = compile_schema(text);
    ASSERT_TRUE(grammar) << grammar.error().message;
    json::Value schema = *json::parse(text, "schema");
    if (text.contains("\"$ref\":\"#here\"")) schema = *json::parse(R"({"enum":["anchored"]})", "schema");
    if (text.contains("odd name")) schema = *json::parse(R"({"type":"integer"})", "schema");
    if (text.contains("additionalItems")) {
      schema = *json::parse(R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"boolean"},"minItems":2,"maxItems":4})",
                            "schema");
    }
    EXPECT_GE(check_random_answers(*grammar, schema, kSeeds), 12);
  }
}

TEST(JsonSchema, WhatCannotBeEnforcedIsRefusedByName) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"type":"array","items":{"type":"integer"},"uniqueItems":true})", "\"uniqueItems\""},
      {R"({"type":"array","contains":{"type":"integer"}})", "\"contains\""},
      {R"({"type":"array","contains":true,"maxContains":2})", "\"contains\""},
      {R"({"not":{"type":"string"}})", "\"not\""},
      {R"({"if":{"type":"string"},"then":{"minLength":2}})", "\"if\""},
      {R"({"type":"object","propertyNames":{"maxLength":3}})", "\"propertyNames\""},
      {R"({"type":"object","minProperties":2})", "\"minProperties\""},
      {R"({"type":"object","properties":{"a":{},"b":{}},"maxProperties":1})", "maxProperties"},
      {R"({"type":"number","multipleOf":0.01})", "\"multipleOf\""},
      {R"({"type":"integer","minimum":1e300})", "\"minimum\""},
      {R"({"type":"string","format":"regex"})", "\"regex\""},
      {R"({"type":"string","format":"phone"})", "\"phone\""},
      {R"({"type":"string","pattern":"(?=a)b"})", "\"pattern\""},
      {R"({"type":"string","pattern":"(a)\\1"})", "\"pattern\""},
      {R"({"type":"string","maxLenght":3})", "\"maxLenght\""},
      {R"({"type":"object","properties":{"a":{"type":"string","maxLenght":3}}})", "\"maxLenght\""},
      {R"({"unevaluatedProperties":false,"allOf":[{}]})", "\"unevaluatedProperties\""},
      {R"({"$dynamicRef":"#x"})", "\"$dynamicRef\""},
      {R"({"$ref":"https://example.com/schema.json"})", "\"$ref\""},
      {R"({"$ref":"other.json#/a"})", "\"$ref\""},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "oneOf"},
      {R"({"type":"object","patternProperties":{"^a":{},"b":{}}})", "pattern"},
      {R"({"enum":[9007199254740993]})", "\"enum\""},
      {R"({"properties":{"x":{"const":"\u0001"}}})", "\"const\""},
      {R"({"x-guidance":{"lenient":true},"type":"array","uniqueItems":true})", "\"uniqueItems\""},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","if":{},"then":false})", "\"if\""},
  };
  for (const auto& [schema, name] : cases) {
    const auto grammar = compile_schema(schema);
    ASSERT_FALSE(grammar) << schema;
    EXPECT_EQ(grammar.error().code, ErrorCode::kUnsupported) << schema << ": " << grammar.error().message;
    EXPECT_THAT(grammar.error().message, HasSubstr(name)) << schema;
  }
}

TEST(JsonSchema, WhatIsNoSchemaIsRefused) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  for (const std::string schema :
       {"", "{", "[]", "1", "false", R"({"type":"text"})", R"({"type":3})", R"({"enum":[]})", R"({"anyOf":[]})", R"({"$ref":"#/nowhere"})",
        R"({"$ref":"#"})", R"({"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})",
        R"({"type":"integer","minimum":3,"maximum":2})", R"({"type":"string","minLength":-1})", R"({"type":"string","pattern":"["})",
        R"({"required":"a"})", R"({"properties":[]})", R"({"multipleOf":0})", "\xff\xfe"}) {
    const auto grammar = compile_schema(schema);
    ASSERT_FALSE(grammar) << schema;
    EXPECT_EQ(grammar.error().code, ErrorCode::kInvalidArgument) << schema << ": " << grammar.error().message;
  }
}

// llguidance would let "\u0061" stand for "a", beside a property of that name.
TEST(JsonSchema, AKeyCannotBeWrittenInAnotherWay) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  const auto grammar = compile_schema(R"({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":true})");
  ASSERT_TRUE(grammar);
  EXPECT_TRUE(takes(*grammar, R"({"a":1,"b":"x"})"));
  EXPECT_FALSE(takes(*grammar, R"({"a":1,"\u0061":"x"})"));
  EXPECT_FALSE(takes(*grammar, R"({"a":1,"a":"x"})"));
}

TEST(JsonSchema, WhitespaceIsBoundedOrNone) {
  WEIR_REQUIRE_CACHED(weir::testing::smollm2_path());
  GrammarSpec spec{.kind = GrammarKind::kJsonObject};
  auto grammar = compile(spec, testing::smollm2_vocabulary());
  EXPECT_TRUE(takes(*grammar, "{\n  \"a\": [\n    1,\n    2\n  ]\n}"));
  EXPECT_FALSE(takes(*grammar, "{\n\n\n\n\"a\": 1}"));
  EXPECT_FALSE(takes(*grammar, "[1]"));
  spec.whitespace = JsonWhitespace::kNone;
  grammar = compile(spec, testing::smollm2_vocabulary());
  EXPECT_TRUE(takes(*grammar, R"({"a":[1,2]})"));
  EXPECT_FALSE(takes(*grammar, R"({"a": [1,2]})"));
}

}  // namespace
}  // namespace weir::grammar
