// SPDX-License-Identifier: Apache-2.0
// Raw samples: every request with all its moments and every gap, as JSON lines or CSV, gzip-compressed when the name ends in .gz. Written
// piece by piece and renamed when whole; read again for reports. A file to be read may come from anybody.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loadgen/records.h"

namespace weir::loadgen {

enum class SampleFormat { kJsonl, kCsv };

struct SampleKind {
  SampleFormat format = SampleFormat::kJsonl;
  bool gzip = false;
  static Result<SampleKind> of(const std::filesystem::path& path);  // .jsonl, .csv, and either with .gz
};

// One run per level of load; rows name the level from 0.
Status write_samples(const std::filesystem::path& path, std::span<const RunResult* const> levels);
Result<std::vector<RunResult>> read_samples(const std::filesystem::path& path);
Result<std::vector<RunResult>> parse_samples(std::string_view text, SampleFormat format);

json::Object record_json(const RequestRecord& record, std::size_t level);
std::string record_csv(const RequestRecord& record, std::size_t level);
std::string_view samples_csv_header();

}  // namespace weir::loadgen
