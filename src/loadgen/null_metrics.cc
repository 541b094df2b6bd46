// SPDX-License-Identifier: Apache-2.0
#include "loadgen/null_metrics.h"

#include <fmt/core.h>

namespace weir::loadgen {

std::string null_metrics_answer(const NullCounts& counts, const std::string& model) {
  const auto one = [&](const char* name, const char* type, std::uint64_t value) {
    return fmt::format("# TYPE {0} {1}\n{0}{{model=\"{2}\"}} {3}\n", name, type, model, value);
  };
  std::string body = "# TYPE weir_requests_total counter\n";
  for (const auto& [outcome, count] : {std::pair{"ok", counts.ok}, {"failed", counts.failed}, {"cancelled", counts.cancelled}})
    body += fmt::format("weir_requests_total{{model=\"{}\",outcome=\"{}\"}} {}\n", model, outcome, count);
  body += one("weir_prompt_tokens_total", "counter", counts.prompt_tokens) +
          one("weir_generated_tokens_total", "counter", counts.generated_tokens) + one("weir_requests_running", "gauge", counts.running) +
          one("weir_requests_waiting", "gauge", counts.waiting);
  return fmt::format("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\r\n{}",
                     body.size(), body);
}

}  // namespace weir::loadgen
