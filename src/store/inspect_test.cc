// SPDX-License-Identifier: Apache-2.0
#include "store/inspect.h"

#include <gtest/gtest.h>

#include "base/testing.h"

namespace weir::store {
namespace {

const MetadataItem* find(const ModelDescription& model, std::string_view key) {
  for (const MetadataItem& item : model.metadata)
    if (item.key == key) return &item;
  return nullptr;
}

TEST(InspectModel, DescribesAGgufFile) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const auto model = inspect_model(testing::smollm2_path());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->format, "GGUF v3");
  EXPECT_EQ(model->architecture, "llama");
  EXPECT_EQ(model->file_bytes, 98'362'432u);
  EXPECT_EQ(model->summary.tensors, 272);
  EXPECT_EQ(model->summary.parameters, 134'515'008);
  EXPECT_EQ(model->metadata.size(), 33u);
  ASSERT_TRUE(find(*model, "llama.block_count"));
  EXPECT_EQ(find(*model, "llama.block_count")->text, "30");
  const MetadataItem* tokens = find(*model, "tokenizer.ggml.tokens");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->value.as_object().at("count").as_uint64(), 49152u);
  EXPECT_EQ(tokens->text, "<|endoftext|>, <|im_start|>, <|im_end|>, <repo_name>, <reponame>, <file_sep>, … (49152 in all)");
  EXPECT_EQ(find(*model, "llama.attention.layer_norm_rms_epsilon")->text, "1e-05");
}

TEST(InspectModel, DescribesAFolder) {
  const auto folder = testing::data_path("arch/llama");
  const auto model = inspect_model(folder);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->format, "safetensors");
  EXPECT_EQ(model->architecture, "llama");
  EXPECT_GT(model->summary.parameters, 0);
  ASSERT_TRUE(find(*model, "hidden_size"));
  EXPECT_EQ(find(*model, "hidden_size")->type, "number");
}

TEST(InspectModel, OtherFilesAreErrors) {
  EXPECT_FALSE(inspect_model(testing::data_path("wikitext2_test.txt")));
  EXPECT_FALSE(inspect_model("/nonexistent/model.gguf"));
}

}  // namespace
}  // namespace weir::store
