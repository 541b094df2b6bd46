// SPDX-License-Identifier: Apache-2.0
#include "sampling/sampler.h"

#include <cmath>
#include <limits>

#include "sampling/random.h"

namespace weir::sampling {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// The lowest index of the largest logit, or -1 when none is above -inf. NaN and +inf are errors of the model or its file.
Result<TokenId> greedy_choice(std::span<const float> logits) {
  float best = kMasked;
  TokenId choice = -1;
  bool broken = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    broken |= !(logits[i] < std::numeric_limits<float>::infinity());
    if (logits[i] > best) {
      best = logits[i];
      choice = static_cast<TokenId>(i);
    }
  }
  if (broken)
    return fail(ErrorCode::kInvalidArgument,
                "the model gave a logit that is not a number: its file is damaged or not meant for this arithmetic");
  if (choice < 0) return fail(ErrorCode::kInvalidArgument, "no token is left to choose from: the grammar or the logit biases exclude all");
  return choice;
}

}  // namespace

Sampler::Sampler(const SamplingParams& params, std::uint64_t sequence)
    : params_(params), seed_(params.seed ? *params.seed : fresh_seed()), sequence_(sequence) {}

bool Sampler::changes_logits() const {
  return !params_.logit_bias.empty() || params_.repetition_penalty != 1 || params_.frequency_penalty != 0 ||
         params_.presence_penalty != 0 || !params_.greedy();
}

void Sampler::see_prompt(std::span<const TokenId> tokens) {
  if (params_.repetition_penalty == 1) return;
  for (TokenId id : tokens) ++seen_[id].total;
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
  for (const auto& [id, counts] : seen_) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits_.size()) continue;
    float& logit = logits_[static_cast<std::size_t>(id)];
    logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    if (counts.answered > 0) logit -= params_.frequency_penalty * static_cast<float>(counts.answered) + params_.presence_penalty;
  }
}

Result<TokenId> Sampler::choose(std::span<const float> logits, std::uint64_t position) {
  WEIR_ASSIGN(const TokenId best, greedy_choice(logits));
  if (params_.greedy()) return best;
  // Relative to the largest, so that a tiny temperature cannot overflow.
  const float top = logits[static_cast<std::size_t>(best)];
  for (float& logit : logits_) logit = (logit - top) / params_.temperature;
  candidates_.assign(logits_);
  candidates_.keep_top_k(params_.top_k);
  candidates_.keep_typical(params_.typical_p);
  candidates_.keep_top_p(params_.top_p);
  candidates_.keep_min_p(params_.min_p);
  return candidates_.draw(uniform(seed_, sequence_, position));
}

Result<TokenId> Sampler::sample(std::span<const float> logits, std::uint64_t position, std::span<const std::uint32_t> allowed) {
  if (changes_logits() || !allowed.empty()) {
    logits_.assign(logits.begin(), logits.end());
    if (!allowed.empty()) apply_mask(allowed);
    apply_bias_and_penalties();
    logits = logits_;
  }
  WEIR_ASSIGN(const TokenId id, choose(logits, position));
  if (params_.repetition_penalty != 1 || params_.frequency_penalty != 0 || params_.presence_penalty != 0) {
    Counts& counts = seen_[id];
    ++counts.total;
    ++counts.answered;
  }
  return id;
}

}  // namespace weir::sampling
