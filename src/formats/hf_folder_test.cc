// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_folder.h"

#include <gtest/gtest.h>

#include "base/testing.h"

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
    ++folders;
  }
  EXPECT_EQ(folders, 47);
}

}  // namespace
}  // namespace weir::formats
