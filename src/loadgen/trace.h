// SPDX-License-Identifier: Apache-2.0
// Recorded load: when requests came and how long they were, in the formats of the Azure LLM inference traces (CSV with TIMESTAMP,
// ContextTokens, GeneratedTokens) and of Mooncake's (JSONL with timestamp in ms, input_length, output_length, hash_ids).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace weir::loadgen {

struct TraceEntry {
  Duration at{};  // from the trace's first request
  std::int64_t input_tokens = 0, output_tokens = 0;
  std::vector<std::int64_t> prefix_blocks;  // ids of the prompt's blocks; equal ids at the front are an equal text
};

struct Trace {
  std::vector<TraceEntry> entries;  // ascending
  std::int64_t block_tokens = 512;  // of a prefix block
};

// A '{' at its start means JSONL. Errors name the line.
Result<Trace> parse_trace(std::string_view text);
Result<Trace> read_trace(const std::filesystem::path& path);

// Time divided by `speed` (2: twice as fast), cut to what comes before `length` and to `requests` (0: no limit).
Trace scaled(const Trace& trace, double speed, Duration length, std::size_t requests);

}  // namespace weir::loadgen
