// SPDX-License-Identifier: Apache-2.0
// The rendered cases of tests/data/chat: every template and language case must equal what Jinja2 with transformers' settings
// wrote. Third-party templates come from the test cache; cases without theirs are skipped and counted.
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/file_io.h"
#include "base/mapped_file.h"
#include "base/testing.h"

namespace weir::text {
namespace {

constexpr std::int64_t kCaseClock = 1768480496;  // 2026-01-15T12:34:56, as the cases that use the clock say

json::Value load_cases(std::string_view file) {
  auto text = read_file(testing::data_path("chat") / file);
  EXPECT_TRUE(text) << text.error().message;
  auto parsed = json::parse(*text, file);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return *parsed;
}

// The chat template within the model file: the bytes behind the GGUF key, a length and the text.
std::optional<std::string> template_in_gguf(const std::filesystem::path& path) {
  auto file = MappedFile::open(path);
  if (!file) return std::nullopt;
  const std::string_view head(reinterpret_cast<const char*>((*file)->bytes().data()),
                              std::min<std::size_t>((*file)->bytes().size(), 8u << 20));
  constexpr std::string_view kKey = "tokenizer.chat_template";
  const std::size_t at = head.find(kKey);
  if (at == head.npos) return std::nullopt;
  const std::size_t start = at + kKey.size() + 4;  // behind the value's type
  std::uint64_t size = 0;
  std::memcpy(&size, head.data() + start, sizeof(size));
  return std::string(head.substr(start + 8, size));
}

std::optional<std::string> third_party_template(std::string_view name) {
  if (name.starts_with("@gguf:")) return template_in_gguf(testing::smollm2_path());
  auto text = read_file(testing::cached_path("templates/" + std::string(name) + ".jinja"));
  return text ? std::optional(*text) : std::nullopt;
}

void check_case(const ChatTemplate& chat, const json::Object& one, std::string_view id) {
  SCOPED_TRACE(id);
  const json::Value* context = json::find(one, "context");
  ASSERT_TRUE(context && context->is_object());
  auto rendered = chat.render(context->get_object(), kCaseClock);
  if (const json::Value* error = json::find(one, "expected_error")) {
    ASSERT_FALSE(rendered) << "rendered: " << *rendered;
    EXPECT_EQ(rendered.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(rendered.error().message, std::string_view(error->as_string()));
    return;
  }
  ASSERT_TRUE(rendered) << rendered.error().message;
  EXPECT_EQ(*rendered, std::string_view(one.at("expected").as_string()));
}

void check_cases_with_text(std::string_view file, std::size_t at_least) {
  const json::Value cases = load_cases(file);
  ASSERT_GE(cases.as_array().size(), at_least);
  for (const json::Value& one : cases.as_array()) {
    const json::Object& object = one.as_object();
    auto chat = ChatTemplate::compile(object.at("template").as_string(), "case");
    ASSERT_TRUE(chat) << object.at("id") << ": " << chat.error().message;
    check_case(*chat, object, object.at("id").as_string());
  }
}

TEST(ChatTemplate, RendersTheLanguageCasesAsJinja2Does) { check_cases_with_text("cases_jinja.json", 23); }

// Made by tests/data/chat/README.md's recipe: the language in breadth, and templates with the constructs of well-known models.
TEST(ChatTemplate, RendersMoreCasesAsJinja2Does) { check_cases_with_text("cases_more.json", 250); }

// Characters, as the cases' file counts them: another version of a template is as good as none.
std::int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

TEST(ChatTemplate, RendersTheTemplatesOfRealModels) {
  const json::Value file = load_cases("cases_templates.json");
  std::map<std::string, std::optional<ChatTemplate>> compiled;
  int run = 0, missing = 0;
  for (const json::Value& one : file.at("cases").as_array()) {
    const std::string name(one.at("template").as_string());
    if (!compiled.contains(name)) {
      compiled[name] = std::nullopt;
      auto source = third_party_template(name);
      if (source && characters(*source) == file.at("templates").at(name).at("chars").as_int64()) {
        auto chat = ChatTemplate::compile(*source, name);
        ASSERT_TRUE(chat) << chat.error().message;
        compiled[name] = std::move(*chat);
      }
    }
    if (!compiled[name]) {
      ++missing;
      continue;
    }
    ++run;
    check_case(*compiled[name], one.as_object(), one.at("id").as_string());
  }
  if (missing) GTEST_SKIP() << missing << " of " << run + missing << " cases lack their template: run tools/fetch_test_data.py";
  EXPECT_EQ(run, 86);
}

}  // namespace
}  // namespace weir::text
