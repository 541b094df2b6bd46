// SPDX-License-Identifier: Apache-2.0
// What the null server answers to one request, and when: pure computation, apart from sockets. The truth that tests compare with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loadgen/null_server.h"

namespace weir::loadgen {

// What of a request's body matters here.
struct NullRequest {
  bool chat = true, stream = false, include_usage = false, timings = false;
  std::int64_t max_tokens = 0;     // 0: not given
  std::int64_t prompt_tokens = 0;  // words of the texts, or the ids' count
};

Result<NullRequest> parse_null_request(std::string_view body, bool chat);

// `from` later by `work`, where time stands still in stalls (which count from `origin`).
TimePoint advance(TimePoint from, Duration work, TimePoint origin, const std::vector<NullServerOptions::Stall>& stalls);

class PacedAnswer {
 public:
  // `number` counts the server's requests from 1 and picks the random numbers.
  PacedAnswer(const NullServerOptions& options, const NullRequest& request, std::uint64_t number);

  // Its turn has come; it arrived perhaps earlier. Stalls count from `origin`.
  void begin(TimePoint now, TimePoint arrived, TimePoint origin);
  TimePoint due() const { return due_; }  // of the next event
  bool over() const { return sent_ >= tokens_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t sent() const { return sent_; }
  const NullRequest& request() const { return request_; }

  std::string take_event();          // the next content event in its chunk; moves due() on
  std::string closing() const;       // usage when asked for, [DONE] and the last chunk
  std::string whole_answer() const;  // head and body without streaming
  void skip_to_end();                // for whole answers: due() becomes the last token's

  static std::string stream_head();
  static std::string error_answer(int status, const std::string& message, bool keep = true);

 private:
  std::string usage() const;  // and timings when asked for
  std::string chunk(std::string_view json) const;
  void step(std::int64_t tokens);

  const NullServerOptions* options_;
  NullRequest request_;
  std::uint64_t number_;
  Random random_;
  std::int64_t tokens_ = 1, sent_ = 0;
  TimePoint arrived_{}, begun_{}, origin_{}, first_{}, due_{};
  double ttft_s_ = 0;
};

}  // namespace weir::loadgen
