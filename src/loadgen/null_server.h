// SPDX-License-Identifier: Apache-2.0
// An OpenAI-compatible server without a model that answers at an exactly programmed pace, so that whatever a load generator reports has a
// known right answer. One thread; each event has an absolute due time, so nothing drifts, and how late events left is counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "loadgen/distribution.h"

namespace weir::loadgen {

struct NullServerOptions {
  std::string listen = "127.0.0.1:0";  // port 0: any free one
  Distribution ttft;                   // seconds from a request's last byte (or its turn, see slots) to the first token
  Distribution itl;                    // seconds from a token to the next
  Distribution tokens;                 // of an answer; 0: the request's max_tokens, or 16 when it names none
  int tokens_per_event = 1;            // events come at the pace of their last token
  int slots = 0;                       // requests served at a time, the others wait in order; 0: all at once, 1: a serial server
  std::int64_t error_every = 0;        // each n-th request fails with error_status; 0: none
  int error_status = 500;
  std::int64_t cut_every = 0;      // each n-th request's connection is cut in the middle of the answer
  std::int64_t cached_tokens = 0;  // told in usage
  struct Stall {
    Duration at{}, length{};  // from the first request on: nothing moves, as if the machine stood still
  };
  std::vector<Stall> stalls;
  std::uint64_t seed = 1;
  std::string model = "null";
  bool keep_requests = false;  // see NullServerStats::served
  Duration spin = std::chrono::microseconds(60);
};

// "2s+500ms": at 2 s, for 500 ms.
Result<NullServerOptions::Stall> parse_stall(std::string_view text);

// One request as the server saw it, by the clock that all processes of a machine share: the judge of what a load generator says it did.
struct ServedRequest {
  TimePoint arrived{}, first{}, last{};  // its last byte was read; its first and last events were given to the system
  std::int64_t events = 0;               // 0: an error, or not yet begun
};

struct NullServerStats {
  std::uint64_t requests = 0, events = 0;
  // How late events were given to the system, in seconds. Of the latest million.
  double late_p50 = 0, late_p99 = 0, late_max = 0;
  std::vector<ServedRequest> served;  // in the order of arrival, when asked for: the first ten million
};

// A line per request: arrived_s, first_event_s, last_event_s, events; seconds of the monotonic clock, empty where nothing was sent.
std::string served_csv(const std::vector<ServedRequest>& served);

class NullServer {
 public:
  static Result<std::unique_ptr<NullServer>> start(NullServerOptions options);
  ~NullServer();

  const std::string& address() const { return address_; }  // "127.0.0.1:41233"
  NullServerStats stop();                                  // ends all connections

 private:
  class Core;
  NullServer() = default;
  std::string address_;
  std::unique_ptr<Core> core_;
  std::thread thread_;
};

}  // namespace weir::loadgen
