// SPDX-License-Identifier: Apache-2.0
#include "api/translation.h"

#include <gtest/gtest.h>

#include "api/api_error.h"
#include "api/openai_responses.h"

namespace weir::api {
namespace {

TEST(TranslationTest, WordsOfClientsAreShownShortAndWhole) {
  EXPECT_EQ(shown_word("web_search"), "web_search");
  EXPECT_EQ(shown_word(std::string(39, 'a') + "ü…"), std::string(39, 'a'));
  EXPECT_EQ(shown_word("a\nb\x7f"
                       "c"),
            "a b c");
  EXPECT_EQ(shown_word("\xff"), "\xEF\xBF\xBD");
  EXPECT_EQ(shown_word(""), "");
}

TEST(TranslationTest, ErrorsThatRepeatAnIdAreValidJson) {
  const ApiError error = stored_response({}, "a\xff\"\\\n").error();
  EXPECT_TRUE(json::parse(boost::json::serialize(openai_error(error)), "an error").has_value());
}

TEST(TranslationTest, ToolsAreBoundedAndNamedOnce) {
  const ReadTool read = [](const json::Object& object, const Path& path, Tool& tool) {
    return read_tool_name(object.at("n"), Path(path, "n"), tool.name);
  };
  const auto list = [&](std::size_t count, bool same) {
    json::Array tools;
    for (std::size_t i = 0; i < count; ++i) tools.push_back(json::Object{{"n", same ? "t" : "t" + std::to_string(i)}});
    std::vector<Tool> out;
    const Path root;
    return read_tool_list(tools, Path(root, "tools"), read, out);
  };
  EXPECT_TRUE(list(512, false).has_value());
  EXPECT_EQ(list(513, false).error().param, "tools");
  EXPECT_EQ(list(2, true).error().param, "tools[1]");
}

TEST(TranslationTest, StopTexts) {
  std::vector<std::string> stops;
  EXPECT_TRUE(read_stop_texts("x", Path(), stops).has_value());
  EXPECT_EQ(stops, std::vector<std::string>{"x"});
  EXPECT_FALSE(read_stop_texts("", Path(), stops).has_value());
  EXPECT_FALSE(read_stop_texts(json::Value(std::string(1025, 'x')), Path(), stops).has_value());
  EXPECT_TRUE(read_stop_texts(json::Array{"a", "b"}, Path(), stops).has_value());
  EXPECT_EQ(stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(read_stop_texts(json::Array(65, "x"), Path(), stops).has_value());
  EXPECT_FALSE(read_stop_texts(5, Path(), stops).has_value());
}

}  // namespace
}  // namespace weir::api
