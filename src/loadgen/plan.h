// SPDX-License-Identifier: Apache-2.0
// What a run sends, and when: made whole before the first request, so that nothing is computed while the clock runs that could be before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "loadgen/distribution.h"

namespace weir::loadgen {

struct Turn {
  std::string content;              // JSON: chat messages, comma separated, without brackets; or a prompt (text or ids) for completions
  std::int64_t max_tokens = 0;      // 0: not said
  std::int64_t prompt_tokens = -1;  // as planned; -1: not known
};

// One or more turns; each repeats what was said before it, answers included, so that a server can keep the shared prefix.
struct Conversation {
  std::vector<Turn> turns;
};

struct RequestShape {
  bool chat = true, stream = true;
  std::string model;
  bool ignore_eos = false;    // answers of exactly max_tokens, where the server knows the field
  bool timings = false;       // asks for the server's own times
  bool hash_answers = false;  // keeps each answer's text until its hash is in the record
  json::Object extra;         // members put into each request
};

struct LoadPlan {
  RequestShape shape;
  std::vector<Conversation> conversations;  // taken in turn, again from the first when there are too few
  std::vector<Duration> arrivals;           // open loop: when each conversation begins
  // Closed loop when there are no arrivals: so many users, each beginning a conversation when the one before is over.
  std::int64_t users = 0, closed_requests = 0;  // 0 requests: until closed_length
  Duration closed_length{};
  Distribution think;  // seconds between an answer and the same user's next request
  std::uint64_t seed = 1;
};

// The fixed parts of a body, made once: `before` content `middle` max_tokens `after`.
class BodyWriter {
 public:
  explicit BodyWriter(const RequestShape& shape);
  void append(std::string& out, std::string_view content, std::int64_t max_tokens) const;
  std::size_t size(std::string_view content, std::int64_t max_tokens) const;

 private:
  std::string before_, after_;
};

std::string json_string(std::string_view text);  // as a JSON string
std::string message(std::string_view role, std::string_view text);

}  // namespace weir::loadgen
