// SPDX-License-Identifier: Apache-2.0
// For tests only: where their data lies. Data made for the project is in tests/data; third-party files (SmolLM2, vocabularies,
// templates, MiniLM) are downloaded once by tools/fetch_test_data.py to a cache. A test that lacks one is skipped and says so.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace weir::testing {

inline std::filesystem::path data_path(std::string_view relative) { return std::filesystem::path(WEIR_TEST_DATA) / relative; }

// Where a third-party file lies or would lie: $WEIR_TEST_CACHE, by default ~/.cache/weir/test-data.
inline std::filesystem::path cached_path(std::string_view relative) {
  if (const char* folder = std::getenv("WEIR_TEST_CACHE")) return std::filesystem::path(folder) / relative;
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : "/tmp") / ".cache/weir/test-data" / relative;
}

inline std::filesystem::path smollm2_path() { return cached_path("SmolLM2-135M-Instruct.Q4_1.gguf"); }

// A new folder that disappears with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace weir::testing

// Skips the test when a third-party file is not in the cache.
#define WEIR_REQUIRE_CACHED(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << (path) << " is not here: run tools/fetch_test_data.py"
