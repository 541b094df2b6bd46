// SPDX-License-Identifier: Apache-2.0
// For tests only: a download into a folder of its own, without waits between tries, watched.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "base/testing.h"
#include "store/download.h"
#include "store/test_server.h"

namespace weir::store {

// Bytes that repeat nowhere soon, so that a piece at the wrong place is noticed.
inline std::string sample_content(std::size_t size, unsigned seed = 1) {
  std::string content(size, '\0');
  std::uint32_t state = seed * 2654435761u + 1;
  for (char& c : content) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24);
  }
  return content;
}

struct DownloadBench {
  testing::TemporaryFolder folder;
  DownloadRequest request;
  DownloadLimits limits;
  Watcher watcher;
  std::vector<std::string> notes;
  std::vector<std::chrono::milliseconds> waits;

  explicit DownloadBench(const std::string& url) {
    request.url = url;
    request.target = folder.path() / "file";
    request.label = "file";
    limits.timeouts = {.connect = std::chrono::seconds(5), .stall = std::chrono::seconds(15)};
    limits.sleep = [this](std::chrono::milliseconds wait) { waits.push_back(wait); };
    watcher.on_note = [this](std::string_view note) { notes.emplace_back(note); };
  }
  Result<DownloadedFile> run() { return download(request, limits, watcher); }
  // The error's message; empty when it worked.
  std::string failure() {
    const auto result = run();
    return result ? "" : result.error().message;
  }
  bool final_there() const { return std::filesystem::exists(request.target); }
  std::filesystem::path part() const { return request.target.string() + ".part"; }
  std::uint64_t part_size() const {
    std::error_code error;
    const auto size = std::filesystem::file_size(part(), error);
    return error ? 0 : size;
  }
  std::string content() const { return read_file(request.target).value_or(""); }
  std::size_t files_left() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()));
  }
};

}  // namespace weir::store
