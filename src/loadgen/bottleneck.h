// SPDX-License-Identifier: Apache-2.0
// What bounds the system, in words and with the figures behind them: a function of a run's summary and of what was observed at the server
// meanwhile. Where the figures do not tell, it says so; what is inferred rather than measured is marked as likely.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "loadgen/metrics.h"

namespace weir::loadgen {

enum class Bound { kNotKnown, kClient, kQueue, kKvCapacity, kPrefillCompute, kDecodeBandwidth, kNetwork };
std::string_view bound_name(Bound bound);  // "not_known", "client", "queue", …

// A series that was watched during the run, say vllm:num_requests_waiting.
struct Observed {
  std::string name;
  double mean = 0, max = 0;             // over the run
  std::optional<double> increase = {};  // of a counter
};

struct BottleneckInput {
  std::vector<Observed> observed;
  std::optional<double> mfu, bandwidth_utilisation;  // shares of the machine's limits, 0..1
};
BottleneckInput bottleneck_input(const json::Object& seen);  // Measured::seen

// One thing that the figures say.
struct Finding {
  Bound bound = Bound::kNotKnown;
  double share = 0;  // of the mean whole answer, where it is a part of that
  bool measured = false;
  std::string text;
};

struct Bottleneck {
  Bound bound = Bound::kNotKnown;
  bool measured = false;  // otherwise inferred
  std::string text;       // one sentence
  std::vector<Finding> findings;
};
Bottleneck find_bottleneck(const Summary& summary, const BottleneckInput& input);
std::string to_text(const Bottleneck& bottleneck);
json::Object to_json(const Bottleneck& bottleneck);

}  // namespace weir::loadgen
