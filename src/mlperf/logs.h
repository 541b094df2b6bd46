// SPDX-License-Identifier: Apache-2.0
// What LoadGen wrote, read back: the verdict and the figures from its detail log, the answers from its accuracy log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::mlperf {

inline constexpr std::string_view kSummaryLog = "mlperf_log_summary.txt", kDetailLog = "mlperf_log_detail.txt",
                                  kAccuracyLog = "mlperf_log_accuracy.json";

struct DetailLog {
  std::map<std::string, json::Value, std::less<>> values;  // the last of each key; long lists are left out
  std::vector<std::string> errors, warnings;               // "key: value"

  const json::Value* find(std::string_view key) const;
  // The number, or `fallback` when the key is absent or no number.
  double number(std::string_view key, double fallback = 0) const;
  std::string text(std::string_view key) const;  // "" when absent
  bool flag(std::string_view key) const;
  bool valid() const { return text("result_validity") == "VALID"; }
};

// Lines that are not LoadGen's are passed over; kCorrupt when none is.
Result<DetailLog> parse_detail(std::string_view text);
Result<DetailLog> read_detail(const std::filesystem::path& folder);

struct LoggedAnswer {
  std::uint64_t sequence = 0, sample = 0;
  std::string data, first_token;  // the bytes that the system gave
  std::int64_t tokens = -1;       // -1: not logged
};
Result<std::vector<LoggedAnswer>> parse_accuracy(std::string_view text);
Result<std::vector<LoggedAnswer>> read_accuracy(const std::filesystem::path& folder);

}  // namespace weir::mlperf
