// SPDX-License-Identifier: Apache-2.0
// The access log: one line for each request, JSON or text, written by a thread of its own so that no request waits for a disk. It has no
// field for texts of prompts or answers but those that are asked for, and none for keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::telemetry {

enum class LogFormat { kJson, kText };

struct AccessLogOptions {
  std::filesystem::path file = {};  // "-": standard output; empty: no access log
  LogFormat format = LogFormat::kJson;
  bool prompts = false;               // the texts of prompts and answers too
  std::size_t max_queued = 8u << 20;  // bytes that wait for the disk; what comes beyond is dropped and counted
  std::size_t max_text = 16u << 10;   // of one prompt or answer; longer ones are cut
};

// One request. What is empty, zero or negative is left out of the line, but for status.
struct AccessEntry {
  std::uint64_t http_id = 0;
  std::string id = {};  // as in X-Request-Id
  std::string method = {}, route = {}, peer = {}, user_agent = {}, trace_id = {};
  int status = 0;  // 0: nothing was sent
  std::uint64_t bytes_in = 0, bytes_out = 0;
  double total_ms = 0, first_byte_ms = -1;
  bool streamed = false;
  std::string gone = {};  // why nobody read the answer to its end
  // Of requests for models.
  std::string caller = {}, tenant = {}, model = {}, adapter = {}, error_code = {};
  std::int64_t prompt_tokens = -1, cached_tokens = -1, generated_tokens = -1;
  double queue_ms = -1, prefill_ms = -1, decode_ms = -1, ttft_ms = -1;
  std::vector<std::string> finish_reasons = {};
  std::string prompt = {}, answer = {};  // written only when the options ask for it
};

// The line without its end. `unix_ms`: when it was written.
std::string access_line(const AccessEntry& entry, const AccessLogOptions& options, std::int64_t unix_ms);

class AccessLog {
 public:
  // kIo when the file cannot be opened.
  static Result<std::unique_ptr<AccessLog>> open(AccessLogOptions options);
  ~AccessLog();  // writes what waits

  const AccessLogOptions& options() const;
  void write(const AccessEntry& entry);  // from any thread; waits for no disk
  // After the file was moved away: the next line goes to a new one. When that cannot be opened, the old one is written on.
  Status reopen();
  void flush();                   // until everything written before is at the system
  std::uint64_t dropped() const;  // lines

 private:
  class Writer;
  explicit AccessLog(std::unique_ptr<Writer> writer);
  std::unique_ptr<Writer> writer_;
};

}  // namespace weir::telemetry
