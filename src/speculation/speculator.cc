// SPDX-License-Identifier: Apache-2.0
#include "speculation/speculator.h"

#include <algorithm>

#include "base/check.h"

namespace weir::speculation {
namespace {

constexpr std::int32_t kShadow = 4;       // guesses compared with what comes although they did not run
constexpr std::int32_t kProbeEvery = 64;  // steps without a draft before one is tried again
constexpr std::int32_t kProbeLength = 2;
constexpr float kProbeWorth = 0.6f;
constexpr double kMostSaved = 4;  // steps that an account may hold

}  // namespace

struct Speculator::Sequence {
  std::vector<Acceptance> acceptance;  // per source
  std::vector<TokenId> guesses;        // of the last call, whether they run or not
  std::size_t source = 0;
  std::int32_t strength = 0, wanted = 0, quiet = 0;  // quiet: calls without a draft
  std::int32_t streak = 0;                           // guesses in a row that were right and did not run
  std::size_t size = 0;                              // tokens at that call
  double account = 0;                                // tokens that may be lost, at the pace of plain decoding
};

Speculator::Speculator(const SpeculatorOptions& options, std::vector<std::unique_ptr<DraftSource>> sources)
    : options_(options), sources_(std::move(sources)), general_(sources_.size()), cost_(options.row_slope) {}

Speculator::~Speculator() = default;
Speculator::Speculator(Speculator&&) noexcept = default;
Speculator& Speculator::operator=(Speculator&&) noexcept = default;

void Speculator::forget(SeqId sequence) {
  sequences_.erase(sequence);
  for (const auto& source : sources_) source->forget(sequence);
}

// Compares what was guessed with what has come since.
Speculator::Sequence& Speculator::settle(const SequenceView& view, std::size_t streams) {
  auto& held = sequences_[view.sequence];
  if (held == nullptr) {
    held = std::make_unique<Sequence>();
    for (const Acceptance& general : general_) held->acceptance.push_back(Acceptance::child_of(general));
    held->account = options_.allowance;
  }
  Sequence& s = *held;
  const std::size_t fresh = view.tokens.size() > s.size ? view.tokens.size() - s.size : 0;
  std::int32_t right = 0;
  for (std::size_t i = 0; i < std::min(fresh, s.guesses.size()); ++i) {
    const bool hit = view.tokens[s.size + i] == s.guesses[i];
    const std::int32_t strength = s.strength + static_cast<std::int32_t>(i);
    s.acceptance[s.source].record(strength, hit);
    general_[s.source].record(strength, hit);
    if (!hit) break;
    ++right;
  }
  s.streak = s.quiet > 0 && right > 0 ? s.streak + right : 0;
  if (s.streak > 0) {
    // Guesses that were held back and would have paid, with one too many, earn the next ones a chance.
    const auto rows = static_cast<std::int64_t>(streams);
    const double extra = cost_.seconds(rows + s.streak + 1) / cost_.seconds(rows) - 1;
    const double gain = s.streak - extra * static_cast<double>(rows);
    if (gain > 0) s.account = std::max(s.account, std::min(options_.allowance, s.account + gain));
  }
  s.account = std::min(kMostSaved, s.account + options_.loss * static_cast<double>(fresh));
  s.size = view.tokens.size();
  s.guesses.clear();
  return s;
}

std::span<const Draft> Speculator::propose(std::span<const SequenceView> views, std::int64_t beside, const Filter& filter) {
  const std::size_t n = views.size();
  of_view_.clear();
  for (const SequenceView& view : views) of_view_.push_back(&settle(view, views.size()));
  streams_ = static_cast<std::int64_t>(n);
  lengths_.assign(n, 0);
  drafts_.clear();
  drafting_ = 0;
  drafts_made_ = 0;
  if (n == 0 || sources_.empty()) return drafts_;
  offers_.assign(n * sources_.size(), {});
  for (std::size_t s = 0; s < sources_.size(); ++s) sources_[s]->offer(views, std::span(offers_).subspan(s * n, n));
  const std::int64_t rows = streams_ + std::max<std::int64_t>(beside, 0);
  choose_sources(views, rows);
  if (options_.fixed_length > 0) {
    take_fixed_lengths();
  } else {
    chooser_.choose(prospects_, rows, streams_, cost_, options_.limits, lengths_);
    probe(views);
  }
  make_drafts(views, filter);
  return drafts_;
}

// For each sequence the source that would make it fastest if it were alone, and whether its account allows guesses at all.
void Speculator::choose_sources(std::span<const SequenceView> views, std::int64_t rows) {
  const std::size_t n = views.size();
  prospects_.assign(n, {});
  source_of_.assign(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    double best = 0;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      Offer offer = offers_[s * n + i];
      offer.most = std::min(offer.most, views[i].most);
      if (offer.most < 1) continue;
      const Acceptance& acceptance = of_view_[i]->acceptance[s];
      double value = 0;
      for (std::int32_t length = 1; length <= std::min({offer.most, options_.limits.per_sequence, 8}); length *= 2) {
        const double time = cost_.seconds(rows + length) - cost_.seconds(rows) + sources_[s]->seconds(1, length);
        value = std::max(value, (1 + expected_right(acceptance, offer.strength, length)) / (cost_.seconds(rows) + time));
      }
      if (value <= best) continue;
      best = value;
      source_of_[i] = s;
      prospects_[i] = {&acceptance, offer, sources_[s].get()};
    }
    of_view_[i]->strength = prospects_[i].offer.strength;
    of_view_[i]->source = source_of_[i];
    if (of_view_[i]->account <= 0 && options_.fixed_length <= 0) prospects_[i].offer.most = 0;
  }
}

// Costs and luck change: what did not pay is tried again now and then, on the account of the sequence. How good the guesses of a free
// source are is known without that, so only those that are likely right are worth a look at the cost of rows.
void Speculator::probe(std::span<const SequenceView> views) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    Sequence& s = *of_view_[i];
    const Prospect& prospect = prospects_[i];
    const bool due = lengths_[i] == 0 && prospect.offer.most > 0 && s.quiet >= kProbeEvery && s.account > options_.allowance / 2;
    if (due && (!prospect.source->free() || prospect.acceptance->probability(prospect.offer.strength) >= kProbeWorth))
      lengths_[i] = std::min(kProbeLength, prospect.offer.most);
    s.wanted = lengths_[i];
    s.quiet = lengths_[i] > 0 ? 0 : std::min(s.quiet + 1, kProbeEvery);
  }
}

void Speculator::take_fixed_lengths() {
  std::int32_t room = options_.limits.per_step;
  for (std::size_t i = 0; i < prospects_.size(); ++i) {
    lengths_[i] = std::max(0, std::min({options_.fixed_length, prospects_[i].offer.most, options_.limits.per_sequence, room}));
    room -= lengths_[i];
  }
}

void Speculator::make_drafts(std::span<const SequenceView> views, const Filter& filter) {
  const std::size_t n = views.size();
  kept_.resize(std::max(kept_.size(), n));
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    wishes_.clear();
    std::int32_t longest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (source_of_[i] != s || offers_[s * n + i].most < 1 || views[i].most < 1) continue;
      const std::int32_t length = sources_[s]->free() ? std::max(lengths_[i], std::min(kShadow, views[i].most)) : lengths_[i];
      if (length > 0) wishes_.push_back({i, length});
      longest = std::max(longest, lengths_[i]);
    }
    if (wishes_.empty()) continue;
    guesses_.resize(std::max(guesses_.size(), wishes_.size()));
    for (std::size_t w = 0; w < wishes_.size(); ++w) guesses_[w].clear();
    if (!sources_[s]->draft(views, wishes_, std::span(guesses_).first(wishes_.size()))) continue;
    drafting_ += sources_[s]->seconds(static_cast<std::int64_t>(wishes_.size()), longest);
    for (std::size_t w = 0; w < wishes_.size(); ++w) {
      const std::size_t i = wishes_[w].view;
      of_view_[i]->guesses = guesses_[w];
      const std::size_t length = std::min(guesses_[w].size(), static_cast<std::size_t>(lengths_[i]));
      std::swap(kept_[i], guesses_[w]);
      std::span<const TokenId> draft = std::span(kept_[i]).first(length);
      if (filter && !draft.empty()) draft = draft.first(std::min(draft.size(), filter(views[i].sequence, draft)));
      if (draft.empty()) continue;
      drafts_.push_back({views[i].sequence, draft});
      ++drafts_made_;
    }
  }
}

void Speculator::completed(const StepOutcome& outcome) {
  ++stats_.steps;
  if (outcome.prefill_rows == 0) cost_.record(outcome.decode_rows, outcome.elapsed);
  std::int64_t guesses = 0;
  for (const Verified& v : outcome.verified) guesses += v.drafted;
  for (const Verified& v : outcome.verified) {
    if (v.drafted < 1) continue;
    ++stats_.drafts;
    stats_.drafted += v.drafted;
    stats_.right += v.right;
    const auto found = sequences_.find(v.sequence);
    if (found != sequences_.end()) charge(*found->second, v, outcome, guesses);
  }
}

// In tokens of plain decoding in this batch: what the guesses' rows and their making took, less those that were right.
void Speculator::charge(Sequence& s, const Verified& v, const StepOutcome& outcome, std::int64_t guesses) {
  const std::int64_t rows = outcome.decode_rows + outcome.prefill_rows;
  const double plain = cost_.seconds(std::max<std::int64_t>(1, rows - guesses));
  const double share = static_cast<double>(v.drafted) / static_cast<double>(guesses);
  const double extra = (cost_.seconds(rows) - plain) * share;
  const double making = drafts_made_ > 0 ? drafting_ / static_cast<double>(drafts_made_) : 0;
  // Rows that others share the step with slow them too, so one stream's loss counts for all of them.
  const double lost = (extra + making) / plain * static_cast<double>(std::max<std::int64_t>(streams_, 1));
  s.account = std::min(kMostSaved, s.account + v.right - lost);
}

}  // namespace weir::speculation
