// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_folder.h"

#include <gtest/gtest.h>

#include "base/file_io.h"
#include "base/testing.h"
#include "formats/gguf_test_bytes.h"

namespace weir::formats {
namespace {

TEST(HfFolder, OpensAllReferenceArchitectures) {
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::data_path("arch"))) {
    if (!HfFolder::looks_like(entry.path())) continue;
    const auto folder = HfFolder::open(entry.path());
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_GT(folder->index.tensors().size(), 5u) << entry.path();
    EXPECT_TRUE(folder->tokenizer_json) << entry.path();
    EXPECT_TRUE(folder->tokenizer_config) << entry.path();
    EXPECT_TRUE(json::get_string(folder->config, "model_type")) << entry.path();
    ++folders;
  }
  EXPECT_EQ(folders, 47);
}

TEST(HfFolder, HoldsTheByteTensorsOfMxfp4) {
  const auto folder = HfFolder::open(testing::data_path("arch/gpt_oss_mxfp4"));
  ASSERT_TRUE(folder) << folder.error().message;
  const NamedTensor* blocks = folder->tensor("model.layers.0.mlp.experts.gate_up_proj_blocks");
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->view.type, DType::kU8);
  EXPECT_EQ(blocks->view.rank(), 4);
  EXPECT_EQ(blocks->view.dim(3), 16);
}

class SmallFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    write("config.json", R"({"model_type":"x","rms_norm_eps":1e-5,"limit":Infinity,"unset":NaN})");
    const std::string header = R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
    write("model.safetensors", u64(header.size()) + header + "x");
  }
  void write(const char* name, const std::string& text) { ASSERT_TRUE(write_file_atomically(folder_.path() / name, text)); }
  Result<HfFolder> open() const { return HfFolder::open(folder_.path()); }

  testing::TemporaryFolder folder_;
};

TEST_F(SmallFolder, OptionalFilesMayBeAbsent) {
  const auto folder = open();
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(json::get_double(folder->config, "rms_norm_eps").value(), 1e-5);
  EXPECT_TRUE(folder->tensor("w"));
  EXPECT_FALSE(folder->generation_config);
  EXPECT_FALSE(folder->tokenizer_config);
  EXPECT_FALSE(folder->tokenizer_json);
  EXPECT_FALSE(folder->chat_template);
}

TEST_F(SmallFolder, OptionalFilesAreRead) {
  write("generation_config.json", R"({"temperature":0.6})");
  write("tokenizer_config.json", R"({"chat_template":"from the config"})");
  write("tokenizer.json", "{}");
  const auto folder = open();
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(json::get_double(*folder->generation_config, "temperature").value(), 0.6);
  EXPECT_EQ(folder->tokenizer_json, "{}");
  EXPECT_EQ(folder->chat_template, "from the config");
}

TEST_F(SmallFolder, TheTemplateFileComesBeforeTheConfig) {
  write("tokenizer_config.json", R"({"chat_template":"from the config"})");
  write("chat_template.jinja", "from the file");
  EXPECT_EQ(open()->chat_template, "from the file");
}

TEST_F(SmallFolder, OfNamedTemplatesTheDefaultOneIsTaken) {
  write("tokenizer_config.json", R"({"chat_template":[{"name":"tool_use","template":"t"},{"name":"default","template":"d"}]})");
  EXPECT_EQ(open()->chat_template, "d");
  write("tokenizer_config.json", R"({"chat_template":[{"name":"tool_use","template":"t"},7,{}]})");
  EXPECT_FALSE(open()->chat_template);
}

TEST_F(SmallFolder, ErrorsNameTheFile) {
  const auto expect = [&](const char* part) {
    const auto folder = open();
    ASSERT_FALSE(folder);
    EXPECT_NE(folder.error().message.find(part), std::string::npos) << folder.error().message;
  };
  write("generation_config.json", "[]");
  expect("generation_config.json: should be a JSON object");
  write("config.json", "{");
  expect("config.json: not valid JSON");
  std::filesystem::remove(folder_.path() / "config.json");
  expect("there is no config.json");
  EXPECT_FALSE(HfFolder::looks_like(folder_.path()));
  EXPECT_EQ(HfFolder::open(folder_.path() / "none").error().code, ErrorCode::kNotFound);
}

TEST_F(SmallFolder, OpensWithoutWeightsForTheTokenizerAlone) {
  std::filesystem::remove(folder_.path() / "model.safetensors");
  EXPECT_FALSE(open());
  EXPECT_TRUE(HfFolder::open_without_weights(folder_.path()));
}

}  // namespace
}  // namespace weir::formats
