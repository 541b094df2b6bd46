// SPDX-License-Identifier: Apache-2.0
// Every architecture of the conformance set loads from both containers, with the traits that its config states.
#include "model/load.h"

#include <gmock/gmock.h>

#include "base/testing.h"

namespace weir::model {
namespace {

using ::testing::HasSubstr;

ModelParts load(const std::string& name) {
  auto parts = load_parts(weir::testing::data_path("arch/" + name));
  EXPECT_TRUE(parts) << name << ": " << parts.error().message;
  return parts ? std::move(*parts) : ModelParts{};
}

TEST(LoadTest, EveryArchitectureLoadsFromEveryContainer) {
  int folders = 0, files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(weir::testing::data_path("arch"))) {
    if (!entry.is_directory()) continue;
    ++folders;
    const std::string name = entry.path().filename().string();
    const ModelParts from_folder = load(name);
    for (const auto& file : std::filesystem::directory_iterator(entry.path())) {
      if (file.path().extension() != ".gguf") continue;
      ++files;
      const ModelParts from_file = load(name + "/" + file.path().filename().string());
      EXPECT_EQ(from_file.traits.layers.size(), from_folder.traits.layers.size()) << name;
      EXPECT_EQ(from_file.traits.vocab_size, from_folder.traits.vocab_size) << name;
      EXPECT_EQ(from_file.traits.hidden, from_folder.traits.hidden) << name;
    }
  }
  EXPECT_EQ(folders, 47);
  EXPECT_EQ(files, 40);
}

TEST(LoadTest, LlamaHasTheSizesOfItsConfig) {
  for (const char* name : {"llama", "llama/model-f32.gguf"}) {
    const ModelParts m = load(name);
    EXPECT_EQ(m.traits.vocab_size, 264);
    EXPECT_EQ(m.traits.hidden, 40);
    ASSERT_EQ(m.traits.layers.size(), 2u);
    EXPECT_EQ(m.traits.attention.heads, 4);
    EXPECT_EQ(m.traits.attention.kv_heads, 2);
    EXPECT_EQ(m.traits.attention.head_dim, 10);
    EXPECT_EQ(m.traits.ropes.at(0).pairs, std::string(name).ends_with("gguf"));
    EXPECT_EQ(m.weights.layers.at(1).ffn.down.weight->in(), 72);
    EXPECT_FALSE(m.weights.layers.at(1).attention.q.bias.size());
  }
}

}  // namespace
}  // namespace weir::model
