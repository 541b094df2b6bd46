// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_reader.h"

#include <gtest/gtest.h>

#include <map>

#include "base/testing.h"

namespace weir::formats {
namespace {

TEST(GgufReader, OpensTheDefaultModel) {
  WEIR_REQUIRE_CACHED(testing::smollm2_path());
  const auto file = GgufFile::open(testing::smollm2_path());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->metadata().size(), 33u);
  std::map<std::string, int> types;
  for (const NamedTensor& tensor : file->index().tensors()) ++types[dtype_name(tensor.view.type)];
  EXPECT_EQ(types, (std::map<std::string, int>{{"F32", 61}, {"Q4_1", 210}, {"Q8_0", 1}}));
  EXPECT_EQ(file->get_int("llama.block_count").value(), 30);
  EXPECT_EQ(file->get_strings("tokenizer.ggml.tokens")->size(), 49152u);
  EXPECT_EQ(file->tensor("token_embd.weight")->view.shape, (std::vector<std::int64_t>{49152, 576}));
}

}  // namespace
}  // namespace weir::formats
