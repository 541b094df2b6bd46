// SPDX-License-Identifier: Apache-2.0
#include "loadgen/progress_line.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/units.h"

namespace weir::loadgen {

ProgressView ProgressWatch::look(const Progress& p, double elapsed_s) {
  ProgressView view{.elapsed_s = elapsed_s, .sent = p.sent, .done = p.done, .failed = p.failed, .waiting = p.waiting, .tokens = p.tokens};
  const std::int64_t over = view.done + view.failed;
  if (const double since = elapsed_s - at_; since > 0) {
    view.sent_rate = static_cast<double>(view.sent - sent_) / since;
    view.done_rate = static_cast<double>(over - over_) / since;
    view.token_rate = static_cast<double>(view.tokens - tokens_) / since;
  }
  sent_ = view.sent;
  over_ = over;
  tokens_ = view.tokens;
  at_ = elapsed_s;
  view.ttft_p50 = p.ttft.percentile(50);
  view.ttft_p99 = p.ttft.percentile(99);
  view.itl_p50 = p.itl.percentile(50);
  view.itl_p99 = p.itl.percentile(99);
  return view;
}

double time_left(const ProgressView& v) {
  if (v.length_s > 0) return std::max(0.0, v.length_s - v.elapsed_s);
  const std::int64_t over = v.done + v.failed;
  if (v.expected <= over || over <= 0 || v.elapsed_s <= 0) return -1;
  return v.elapsed_s * static_cast<double>(v.expected - over) / static_cast<double>(over);
}

std::string progress_text(const ProgressView& v) {
  std::string out = fmt::format("{:.0f} s: sent {} ({:.1f}/s), done {}", v.elapsed_s, v.sent, v.sent_rate, v.done + v.failed);
  if (v.expected > 0) out += fmt::format(" of {}", v.expected);
  out += fmt::format(" ({:.1f}/s), {} in flight", v.done_rate, std::max<std::int64_t>(0, v.sent - v.done - v.failed));
  if (v.waiting > 0) out += fmt::format(", {} waiting", v.waiting);
  if (v.failed > 0) out += fmt::format(", {} failed", v.failed);
  if (v.ttft_p50 > 0) out += fmt::format("; TTFT p50 {} p99 {}", format_duration(v.ttft_p50), format_duration(v.ttft_p99));
  if (v.itl_p50 > 0)
    out += fmt::format("; ITL p50 {} p99 {}; {:.0f} tokens/s", format_duration(v.itl_p50), format_duration(v.itl_p99), v.token_rate);
  const double left = time_left(v);
  if (v.length_s > 0 && left == 0) return out + "; waiting for the last answers";
  return left > 0 ? out + fmt::format("; about {} left", format_duration(left)) : out;
}

}  // namespace weir::loadgen
