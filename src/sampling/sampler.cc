// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <algorithm>
#include <limits>

#include "sampling/random.h"
#include "sampling/scan.h"

namespace weir::sampling {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

}  // namespace

Sampler::Sampler(const SamplingParams& params, std::uint64_t sequence)
    : params_(params), seed_(params.seed ? *params.seed : fresh_seed()), sequence_(sequence) {}

bool Sampler::has_penalties() const {
  return params_.repetition_penalty != 1 || params_.frequency_penalty != 0 || params_.presence_penalty != 0;
}

Sampler::Counts& Sampler::count(TokenId id) {
  const auto place = std::ranges::lower_bound(seen_, id, {}, &Counts::id);
  return place != seen_.end() && place->id == id ? *place : *seen_.insert(place, Counts{id, 0});
}

void Sampler::see_prompt(std::span<const TokenId> tokens) {
  if (params_.repetition_penalty == 1) return;
  for (const TokenId id : tokens) seen_.push_back({id, 0});
  std::ranges::sort(seen_, [](const Counts& a, const Counts& b) { return a.id != b.id ? a.id < b.id : a.answered > b.answered; });
  const auto twice = std::ranges::unique(seen_, {}, &Counts::id);
  seen_.erase(twice.begin(), twice.end());
}

void Sampler::apply_mask(std::span<const std::uint32_t> allowed) {
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    const std::size_t word = i / 32;
    if (word >= allowed.size() || !((allowed[word] >> (i % 32)) & 1)) logits_[i] = kMasked;
  }
}

void Sampler::apply_bias_and_penalties() {
  for (const auto& [id, bias] : params_.logit_bias)
    if (static_cast<std::size_t>(id) < logits_.size()) logits_[static_cast<std::size_t>(id)] += bias;
  for (const auto& [id, answered] : seen_) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits_.size()) continue;
    float& logit = logits_[static_cast<std::size_t>(id)];
    logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    if (answered > 0) logit -= params_.frequency_penalty * static_cast<float>(answered) + params_.presence_penalty;
  }
}

// NaN and +inf are errors of the model or its file.
Result<TokenId> Sampler::choose(std::span<const float> logits, std::uint64_t position, std::uint64_t sequence) {
  const LogitScan found = scan(logits);
  if (!found.finite)
    return fail(ErrorCode::kInvalidArgument,
                "the model gave a logit that is not a number: its file is damaged or not meant for this arithmetic");
  if (found.first < 0)
    return fail(ErrorCode::kInvalidArgument, "no token is left to choose from: the grammar or the logit biases exclude all");
  if (params_.greedy()) return found.first;
  return choose_by(logits, found.max, uniform(seed_, sequence, position));
}

TokenId Sampler::choose_by(std::span<const float> logits, float top, double u) {
  const bool all = params_.top_k <= 0 || static_cast<std::size_t>(params_.top_k) >= logits.size();
  bool top_p_done = false;
  if (all) {
    // Relative to the largest, so that a tiny temperature cannot overflow.
    logits_.resize(logits.size());  // perhaps the very same
    for (std::size_t i = 0; i < logits.size(); ++i) logits_[i] = (logits[i] - top) / params_.temperature;
    if (params_.typical_p < 1) {
      candidates_.assign(logits_);
    } else if (params_.top_p < 1) {
      candidates_.assign_top_p(logits_, params_.top_p);
      top_p_done = true;
    } else if (params_.min_p > 0) {
      candidates_.assign_min_p(logits_, params_.min_p);
    } else {
      return candidates_.draw_from_all(logits_, 0, u);
    }
  } else {
    candidates_.assign_top_k(logits, params_.top_k);
    candidates_.apply_temperature(top, params_.temperature);
  }
  candidates_.keep_typical(params_.typical_p);
  if (!top_p_done) candidates_.keep_top_p(params_.top_p);
  candidates_.keep_min_p(params_.min_p);
  return candidates_.draw(u);
}

std::span<const float> Sampler::processed(std::span<const float> logits, std::span<const std::uint32_t> allowed,
                                          std::span<const TokenId> refused) {
  if (!has_penalties() && params_.logit_bias.empty() && allowed.empty() && refused.empty()) return logits;
  logits_.assign(logits.begin(), logits.end());
  if (!allowed.empty()) apply_mask(allowed);
  for (const TokenId id : refused) logits_[static_cast<std::size_t>(id)] = kMasked;
  apply_bias_and_penalties();
  return logits_;
}

Result<TokenId> Sampler::sample(std::span<const float> logits, std::uint64_t position, std::span<const std::uint32_t> allowed) {
  WEIR_ASSIGN(const TokenId id, choose(processed(logits, allowed, {}), position, sequence_));
  see(id);
  return id;
}

bool Sampler::draws_freely() const {
  return params_.greedy() || (params_.top_k <= 0 && params_.top_p >= 1 && params_.min_p <= 0 && params_.typical_p >= 1);
}

Result<TokenId> Sampler::draw(std::span<const float> logits, std::uint64_t position, std::span<const TokenId> refused) {
  return choose(processed(logits, {}, refused), position, stream(refused.size()));
}

Result<TokenId> Sampler::redraw(std::span<const float> logits, std::uint64_t position, std::span<const std::uint32_t> allowed) {
  return choose(processed(logits, allowed, {}), position, stream(255));
}

}  // namespace weir::sampling
