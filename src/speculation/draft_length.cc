// SPDX-License-Identifier: Apache-2.0
#include "speculation/draft_length.h"

#include <algorithm>

namespace weir::speculation {
namespace {

constexpr double kLeastWorth = 0.02;  // a guess below that never pays for its row

}  // namespace

double expected_right(const Acceptance& acceptance, std::int32_t strength, std::int32_t length) {
  double sum = 0, worth = 1;
  for (std::int32_t i = 0; i < length; ++i) sum += worth *= static_cast<double>(acceptance.probability(strength + i));
  return sum;
}

bool LengthChooser::less(const Next& a, const Next& b) { return a.worth != b.worth ? a.worth < b.worth : a.prospect > b.prospect; }

double LengthChooser::worth(const Prospect& prospect, double before, std::int32_t length) {
  return before * static_cast<double>(prospect.acceptance->probability(prospect.offer.strength + length - 1));
}

// Time of making the drafts; each source drafts for all its sequences at once, as far as the longest.
double LengthChooser::drafting(std::span<const Prospect> prospects, std::span<const std::int32_t> lengths) const {
  double sum = 0;
  const DraftSource* done = nullptr;
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    const DraftSource* source = prospects[i].source;
    if (source == nullptr || source == done || lengths[i] == 0 || source->free()) continue;
    std::int64_t sequences = 0;
    std::int32_t longest = 0;
    for (std::size_t j = 0; j < prospects.size(); ++j) {
      if (prospects[j].source != source || lengths[j] == 0) continue;
      if (j < i) {
        sequences = 0;  // counted with an earlier one
        break;
      }
      ++sequences;
      longest = std::max(longest, lengths[j]);
    }
    if (sequences > 0) sum += source->seconds(sequences, longest);
    done = source;
  }
  return sum;
}

void LengthChooser::choose(std::span<const Prospect> prospects, std::int64_t rows, std::int64_t streams, const RowCost& cost,
                           const LengthLimits& limits, std::span<std::int32_t> lengths) {
  heap_.clear();
  taken_.clear();
  std::ranges::fill(lengths, 0);
  bool priced = false;
  for (std::size_t i = 0; i < prospects.size(); ++i) {
    if (prospects[i].offer.most < 1) continue;
    heap_.push_back({worth(prospects[i], 1, 1), i, 1});
    priced |= prospects[i].source != nullptr && !prospects[i].source->free();
  }
  std::ranges::make_heap(heap_, less);
  double tokens = static_cast<double>(streams);
  double best = tokens / cost.seconds(rows) * (1 + limits.least_gain);
  std::size_t best_size = 0;
  const std::int64_t most = std::min<std::int64_t>(limits.per_step, cost.within_reach(rows) - rows);
  while (!heap_.empty() && static_cast<std::int64_t>(taken_.size()) < most) {
    std::ranges::pop_heap(heap_, less);
    const Next next = heap_.back();
    heap_.pop_back();
    if (next.worth < kLeastWorth) break;
    taken_.push_back(next);
    tokens += next.worth;
    lengths[next.prospect] = next.length;
    double time = cost.seconds(rows + static_cast<std::int64_t>(taken_.size()));
    if (priced) time += drafting(prospects, lengths);
    if (tokens / time > best) {
      best = tokens / time;
      best_size = taken_.size();
    }
    const Prospect& prospect = prospects[next.prospect];
    if (next.length >= std::min(limits.per_sequence, prospect.offer.most)) continue;
    heap_.push_back({worth(prospect, next.worth, next.length + 1), next.prospect, next.length + 1});
    std::ranges::push_heap(heap_, less);
  }
  std::ranges::fill(lengths, 0);
  for (std::size_t i = 0; i < best_size; ++i) lengths[taken_[i].prospect] = taken_[i].length;
}

}  // namespace weir::speculation
