// SPDX-License-Identifier: Apache-2.0
// Formats by name, and guessed from the templates of real models and the built-in ones.
#include "api/output_format.h"

#include <gtest/gtest.h>

#include <map>

#include "base/file_io.h"
#include "base/testing.h"
#include "text/named_templates.h"

namespace weir::api {
namespace {

TEST(OutputFormats, EachIsFoundByItsName) {
  ASSERT_GT(output_format_names().size(), 20u);
  for (const std::string_view name : output_format_names()) {
    const OutputFormat* format = find_output_format(name);
    ASSERT_TRUE(format) << name;
    EXPECT_EQ(name_of(*format), name);
  }
  EXPECT_FALSE(find_output_format("nope"));
  EXPECT_FALSE(has_tools(*find_output_format("none")));
  EXPECT_FALSE(has_tools(*find_output_format("think")));
  EXPECT_TRUE(has_tools(*find_output_format("json")));
  EXPECT_TRUE(has_tools(*find_output_format("gpt-oss")));
  EXPECT_TRUE(needs_special(*find_output_format("gpt-oss")));
  EXPECT_FALSE(needs_special(*find_output_format("hermes")));
}

std::string_view guess(std::string_view text) {
  return name_of(*guess_output_format(text, [](std::string_view) { return false; }));
}

// The file's name without its ending, and the format. "none" and "think" are formats of calls that are not known here.
const std::map<std::string_view, std::string_view> kReal = {
    {"Apertus-8B-Instruct", "apertus"},
    {"Apriel-1.6-15b-Thinker-fixed", "apriel-1.6"},
    {"Bielik-11B-v3.0-Instruct", "hermes"},
    {"ByteDance-Seed-OSS", "seed-oss"},
    {"Cohere2MoE", "command-r7b"},
    {"CohereForAI-c4ai-command-r-plus-tool_use", "command-r"},
    {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", "command-r7b"},
    {"GLM-4.6", "glm"},
    {"GLM-4.7-Flash", "glm"},
    {"GigaChat3-10B-A1.8B", "gigachat-3"},
    {"GigaChat3.1-10B-A1.8B", "gigachat"},
    {"HuggingFaceTB-SmolLM3-3B", "think"},
    {"Kimi-K2-Instruct", "kimi-k2"},
    {"Kimi-K2-Thinking", "kimi-k2"},
    {"Kimi-K3", "none"},
    {"LFM2-8B-A1B", "lfm2"},
    {"LFM2.5-8B-A1B", "lfm2"},
    {"LFM2.5-Instruct", "lfm2"},
    {"MiMo-VL", "hermes"},
    {"MiniMax-M1", "minimax-m1"},
    {"MiniMax-M2", "minimax-m2"},
    {"MiniMax-M3", "none"},
    {"Mistral-Small-3.2-24B-Instruct-2506", "mistral"},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "qwen3-coder"},
    {"NVIDIA-Nemotron-Nano-v2", "nemotron"},
    {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "hermes"},
    {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes"},
    {"Qwen-QwQ-32B", "hermes"},
    {"Qwen-Qwen2.5-7B-Instruct", "hermes"},
    {"Qwen-Qwen3-0.6B", "hermes"},
    {"Qwen3-Coder", "qwen3-coder"},
    {"Qwen3.5-4B", "qwen3-coder"},
    {"Reka-Edge", "hermes"},
    {"Spark2.5", "glm"},
    {"StepFun3.5-Flash", "qwen3-coder"},
    {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek-r1"},
    {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-r1"},
    {"deepseek-ai-DeepSeek-V3.1", "deepseek-v3.1"},
    {"deepseek-ai-DeepSeek-V3.2", "deepseek-v3.2"},
    {"deepseek-ai-DeepSeek-V4", "deepseek-v4"},
    {"deepseek-ai-DeepSeek-V4-Flash-0731", "deepseek-v4"},
    {"fireworks-ai-llama-3-firefunction-v2", "firefunction"},
    {"google-gemma-2-2b-it", "none"},
    {"google-gemma-4-31B-it", "none"},
    {"google-gemma-4-31B-it-interleaved", "none"},
    {"ibm-granite-granite-3.3-2B-Instruct", "granite"},
    {"ibm-granite-granite-4.0", "hermes"},
    {"ibm-granite-granite-4.1", "hermes"},
    {"inclusionai-ling-3.0-flash", "glm"},
    {"llama-cpp-deepseek-r1", "deepseek-r1"},
    {"llama-cpp-rwkv-world", "think"},
    {"meetkai-functionary-medium-v3.1", "functionary"},
    {"meetkai-functionary-medium-v3.2", "none"},
    {"meta-llama-Llama-3.1-8B-Instruct", "llama3"},
    {"meta-llama-Llama-3.2-3B-Instruct", "llama3"},
    {"meta-llama-Llama-3.3-70B-Instruct", "llama3"},
    {"microsoft-Phi-3.5-mini-instruct", "none"},
    {"mistralai-Ministral-3-14B-Reasoning-2512", "mistral"},
    {"mistralai-Mistral-Nemo-Instruct-2407", "mistral-v3"},
    {"moonshotai-Kimi-K2", "kimi-k2"},
    {"muse-glimmer", "none"},
    {"openai-gpt-oss-120b", "gpt-oss"},
    {"openbmb-MiniCPM5-1B", "minicpm"},
    {"poolside-Laguna-S-2.1", "glm"},
    {"poolside-Laguna-XS-2.1", "glm"},
    {"poolside-Laguna-XS.2", "glm"},
    {"tencent-Hy3", "hunyuan"},
    {"unsloth-Apriel-1.5", "apriel-1.6"},
    {"unsloth-mistral-Devstral-Small-2507", "mistral"},
    {"upstage-Solar-Open-100B", "none"},
};

TEST(OutputFormats, GuessedFromTheTemplatesOfRealModels) {
  WEIR_REQUIRE_CACHED(weir::testing::cached_path("templates"));
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(weir::testing::cached_path("templates"))) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".jinja" || !kReal.contains(name)) continue;
    ++seen;
    EXPECT_EQ(guess(*read_file(entry.path())), kReal.at(name)) << name;
  }
  EXPECT_GT(seen, 0);
}

// They write no tools; DeepSeek's reasoning is no part of its built-in template either.
TEST(OutputFormats, TheBuiltInTemplatesHaveNone) {
  for (const text::NamedTemplate& one : text::named_templates()) EXPECT_EQ(guess(one.source), "none") << one.name;
}

TEST(OutputFormats, SpecialTokensTellWhereTheTemplateDoesNot) {
  const auto has = [](std::string_view token) { return token == "[TOOL_CALLS]" || token == "[ARGS]"; };
  EXPECT_EQ(name_of(*guess_output_format("{{ messages }}", has)), "mistral");
  EXPECT_EQ(name_of(*guess_output_format("{{ messages }}", nullptr)), "none");
}

}  // namespace
}  // namespace weir::api
