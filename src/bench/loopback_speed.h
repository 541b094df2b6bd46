// SPDX-License-Identifier: Apache-2.0
// What TCP costs on this machine without a network: the least that a client beside a server pays, and what a proxy adds.
#pragma once

#include <functional>

#include "base/json.h"
#include "base/result.h"
#include "base/spread.h"
#include "bench/latency.h"

namespace weir::bench {

struct LoopbackSpeed {
  Spread stream_bytes_per_s;  // one connection, one direction, writes of 64 KiB
  Latency round_trip;         // one byte there and back, without delay of small writes
  Spread connections_per_s;   // one after the other: connect, accept, close by the server, seen by the client
};

// About `seconds` (at most 10) for each of the three. No socket call waits for more than two seconds. `keep_going` is asked between runs,
// of which each figure has five; false cancels.
Result<LoopbackSpeed> measure_loopback(double seconds, const std::function<bool()>& keep_going);

json::Object to_json(const LoopbackSpeed& loopback);

}  // namespace weir::bench
