// SPDX-License-Identifier: Apache-2.0
// One file from a URL to its place on the disk. It appears under its name complete and checked, or not at all; what an
// interrupted download has loaded stays beside it as NAME.part and is continued if the server still has the same version.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/http_get.h"
#include "store/manifest.h"
#include "store/progress.h"

namespace weir::store {

struct DownloadRequest {
  std::string url;
  std::filesystem::path target;       // its folder must exist
  std::string label;                  // for progress and notes
  std::optional<std::uint64_t> size;  // what the catalogue says
  std::string sha256;                 // what the catalogue says, or empty
  std::string magic;                  // how the file must begin, or empty
  std::string token;                  // bearer token for the URL's own origin, or empty
  bool allow_http = false;            // plain http beyond this machine
};

struct DownloadLimits {
  HttpTimeouts timeouts;
  int retries = 6;  // in a row, without a megabyte of progress between them
  std::chrono::milliseconds first_backoff{1000}, longest_backoff{30'000};
  std::uint64_t max_bytes = std::uint64_t{4} << 40;
  std::function<void(std::chrono::milliseconds)> sleep;  // for tests; by default the thread sleeps
};

struct DownloadedFile {
  std::uint64_t size = 0;
  std::string sha256;
  VerifiedBy verified_by = VerifiedBy::kNobody;
};

Result<DownloadedFile> download(const DownloadRequest& request, const DownloadLimits& limits, const Watcher& watcher);

// kExhausted when the file system of `folder` has not `bytes` left.
Status check_free_space(const std::filesystem::path& folder, std::uint64_t bytes);

}  // namespace weir::store
