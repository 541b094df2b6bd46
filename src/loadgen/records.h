// SPDX-License-Identifier: Apache-2.0
// What a run leaves behind: one record per request with every moment that counts, as offsets from the run's start. Metrics are computed
// from these alone, so tests make them by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "loadgen/event_loop.h"

namespace weir::loadgen {

enum class Outcome : std::uint8_t {
  kOk,
  kHttpError,    // a status other than 2xx
  kStreamError,  // an error object within a stream
  kMalformed,    // neither HTTP nor JSON as it should be
  kConnect,      // no connection
  kCut,          // the connection ended before the answer did
  kTimeout,
  kLocal,       // the generator's own machine refused: files, ports, memory
  kUnfinished,  // the run ended first
};
inline constexpr int kOutcomes = 9;
std::string_view outcome_name(Outcome outcome);  // "ok", "http_error", …

inline constexpr Duration kNever = Duration::min();

struct RequestRecord {
  Duration scheduled{};         // due by the arrival process; for a later turn or a closed loop: the answer before plus the think time
  Duration eligible{};          // from here on only the generator itself could delay it: scheduled, or when the cap let it through
  Duration started = kNever;    // the generator took it up
  Duration connected = kNever;  // when it needed a new connection
  Duration sent = kNever;       // its last byte was given to the system
  Duration first_token = kNever, last_token = kNever;
  Duration done = kNever;                                                   // the answer's end
  std::vector<Duration> gaps;                                               // between events with content, each
  std::int64_t prompt_tokens = -1, output_tokens = -1, cached_tokens = -1;  // as the server says; -1: it does not
  std::int64_t events = 0;                                                  // with content
  double queue_s = -1, prefill_s = -1, decode_s = -1;                       // the server's own times, where it gives them
  std::uint64_t answer_hash = 0;                                            // FNV-1a of the answer's text, when asked for; 0: not
  Outcome outcome = Outcome::kUnfinished;
  std::int16_t status = 0;
  std::uint16_t turn = 0;
  std::uint32_t conversation = 0;
  std::int64_t tokens() const { return output_tokens >= 0 ? output_tokens : events; }
  // How late the generator sent it by its own fault: time to connect and waiting for the cap are not counted.
  Duration late() const {
    if (sent == kNever) return started == kNever ? Duration::zero() : started - eligible;
    return connected == kNever ? sent - eligible : (started - eligible) + (sent - connected);
  }
};

struct RunResult {
  std::vector<RequestRecord> records;  // by scheduled time
  Duration length{};                   // from the start to the last answer's end
  std::vector<LoopUsage> workers;
  double read_lag_p50 = 0, read_lag_p99 = 0, read_lag_max = 0;  // from the system's word that a socket is ready to reading it, seconds
  std::uint64_t connections_opened = 0, resent = 0;
  std::string first_error;   // its text
  std::int64_t offered = 0;  // requests that were due
  std::size_t prompts = 0;   // different conversations that the plan had: request n took number `conversation` modulo this
  bool open_loop = true, interrupted = false;
};

}  // namespace weir::loadgen
