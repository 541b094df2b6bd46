// SPDX-License-Identifier: Apache-2.0
#include "sampling/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace weir::sampling {
namespace {

// Length of the longest proper prefix of `stop` that ends the text.
std::size_t partial_match(std::string_view text, std::string_view stop) {
  for (std::size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n)
    if (text.ends_with(stop.substr(0, n))) return n;
  return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string StopMatcher::push(std::string_view piece) {
  if (stopped_) return {};
  if (stops_.empty()) return std::string(piece);
  held_ += piece;
  std::size_t best_end = std::string::npos, best_begin = 0;
  std::size_t keep = 0;
  for (const std::string& stop : stops_) {
    if (const std::size_t begin = held_.find(stop); begin != std::string::npos) {
      const std::size_t end = begin + stop.size();
      if (end < best_end || (end == best_end && begin < best_begin)) {
        best_end = end;
        best_begin = begin;
        matched_ = stop;
      }
    }
    keep = std::max(keep, partial_match(held_, stop));
  }
  if (best_end != std::string::npos) {
    stopped_ = true;
    return std::exchange(held_, {}).substr(0, best_begin);
  }
  std::string settled = held_.substr(0, held_.size() - keep);
  held_.erase(0, settled.size());
  return settled;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace weir::sampling
