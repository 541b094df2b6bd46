// SPDX-License-Identifier: Apache-2.0
// An accuracy run's score: LoadGen's accuracy log beside the data set's references.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "mlperf/dataset.h"
#include "mlperf/logs.h"
#include "mlperf/scoring.h"

namespace weir::mlperf {

struct ScoredSample {
  std::size_t sample = 0;
  std::string answer;
  std::int64_t tokens = -1;
  Score score;
};

struct Accuracy {
  std::vector<ScoredSample> samples;                            // by number
  std::size_t missing = 0;                                      // of the data set, that the log does not hold
  std::size_t scored = 0;                                       // that have a reference
  double exact_match = 0, rouge1 = 0, rouge2 = 0, rouge_l = 0;  // means in per cent
  double tokens_per_sample = 0;
  std::int64_t characters = 0;  // of all answers
};

// `decode`: from logged bytes to text. kCorrupt for a sample that the data set does not have; of several logs of one the last counts.
Result<Accuracy> score_log(const std::vector<LoggedAnswer>& log, const Dataset& dataset,
                           const std::function<std::string(std::string_view)>& decode);

std::string to_text(const Accuracy& accuracy);
json::Object to_json(const Accuracy& accuracy, const Dataset& dataset);

}  // namespace weir::mlperf
