// SPDX-License-Identifier: Apache-2.0
// Any bytes as what the MLPerf verb reads: data sets, LoadGen's logs, a user.conf, and texts to score.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "mlperf/accuracy.h"
#include "mlperf/dataset.h"
#include "mlperf/logs.h"
#include "mlperf/scoring.h"
#include "mlperf/user_conf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::mlperf;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto set = parse_dataset(bytes, "set");
  if (set) (void)set->has_answers();
  (void)parse_detail(bytes);
  if (const auto log = parse_accuracy(bytes); log && set) (void)score_log(*log, *set, [](std::string_view d) { return std::string(d); });
  ConfOptions options;
  options.target_qps = 1;
  options.scenario = Scenario::kServer;
  if (size < 4096) {
    (void)conf_sets(bytes, "weir", Scenario::kServer, "target_qps");
    (void)make_user_conf(options, bytes);
    const std::size_t half = size / 2;
    const Score s = score(bytes.substr(0, half), bytes.substr(half));
    WEIR_CHECK(s.rouge1 >= 0 && s.rouge1 <= 1 && s.rouge2 >= 0 && s.rouge2 <= 1 && s.rouge_l >= 0 && s.rouge_l <= s.rouge1 + 1e-12);
    const Score same = score(bytes, bytes);
    WEIR_CHECK(same.exact && (rouge_words(bytes).empty() || same.rouge_l > 0.999999));
  }
  return 0;
}
