// SPDX-License-Identifier: Apache-2.0
// Samples that are asked before LoadGen takes a time: the rules allow it, it finds out whether the system answers at all, and it gives
// LoadGen the expected latency from which it works out how many queries to prepare.
#pragma once

#include <functional>

#include "base/clock.h"
#include "mlperf/answer_source.h"

namespace weir::mlperf {

struct WarmUp {
  double fastest_s = 0;           // of a query, from asking it to its last answer's end: the first ones are slow
  std::int64_t least_tokens = 0;  // of an answer
};

// `queries` one after the other, each of `width` samples at once. The first error of a sample is the result; kDeadline when one takes
// longer than `patience`, kCancelled when `keep_going` turns false. `source` may still be at work then.
Result<WarmUp> warm_up(AnswerSource& source, std::size_t samples, int queries, int width, Duration patience,
                       const std::function<bool()>& keep_going);

}  // namespace weir::mlperf
