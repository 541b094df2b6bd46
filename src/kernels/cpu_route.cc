// SPDX-License-Identifier: Apache-2.0
// Choosing experts. Scores decide with the correction added; weights come from the scores without it (DeepSeek-V3,
// arXiv:2412.19437, section 2.1.2). Experts outside of the chosen groups cannot be chosen.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu_backend_impl.h"

namespace weir::kernels {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Ids of the `count` largest values in order, ties to the lower id; `taken` marks what may not be chosen (again).
void take_largest(std::span<const float> values, std::span<bool> taken, std::span<std::int32_t> ids) {
  for (std::int32_t& id : ids) {
    id = -1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!taken[i] && (id < 0 || values[i] > values[static_cast<std::size_t>(id)])) id = static_cast<std::int32_t>(i);
    }
    WEIR_CHECK(id >= 0, "fewer candidates than {}", ids.size());
    taken[static_cast<std::size_t>(id)] = true;
  }
}

void softmax(std::span<float> x) {
  float largest = kNever, sum = 0;
  for (float v : x) largest = std::max(largest, v);
  for (float& v : x) sum += v = std::exp(v - largest);
  for (float& v : x) v /= sum;
}

float group_score(std::span<const float> scores, GroupScore kind) {
  float first = kNever, second = kNever;
  for (float s : scores) {
    if (s > first) {
      second = std::exchange(first, s);
    } else if (s > second) {
      second = s;
    }
  }
  return kind == GroupScore::kMax || scores.size() < 2 ? first : first + second;
}

// Marks the experts of all but the best groups as taken.
void exclude_groups(std::span<const float> scores, const RouterParams& params, std::span<bool> taken, Scratch& scratch) {
  const auto groups = static_cast<std::size_t>(params.groups), kept = static_cast<std::size_t>(params.top_groups);
  const std::size_t size = scores.size() / groups;
  const std::span group_scores(scratch.take<float>(params.groups), groups);
  const std::span chosen(scratch.take<bool>(params.groups), groups);
  const std::span best(scratch.take<std::int32_t>(params.top_groups), kept);
  for (std::size_t g = 0; g < groups; ++g) group_scores[g] = group_score(scores.subspan(g * size, size), params.group_score);
  std::ranges::fill(chosen, false);
  take_largest(group_scores, chosen, best);
  for (std::size_t i = 0; i < taken.size(); ++i) taken[i] = !chosen[i / size];
}

void route_row(std::span<const float> logits, const RouterParams& params, std::span<std::int32_t> ids, std::span<float> weights,
               Scratch& scratch) {
  const auto experts = static_cast<std::int64_t>(logits.size());
  const std::span scores(scratch.take<float>(experts), logits.size());
  const std::span choice(scratch.take<float>(experts), logits.size());
  const std::span taken(scratch.take<bool>(experts), logits.size());
  std::ranges::copy(logits, scores.begin());
  if (params.score == RouterScore::kSoftmax) softmax(scores);
  if (params.score == RouterScore::kSigmoid)
    for (float& s : scores) s = 1.0f / (1.0f + std::exp(-s));
  for (std::size_t i = 0; i < scores.size(); ++i) choice[i] = params.correction ? scores[i] + params.correction[i] : scores[i];
  std::ranges::fill(taken, false);
  if (params.groups > 1) exclude_groups(choice, params, taken, scratch);
  take_largest(choice, taken, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) weights[i] = scores[static_cast<std::size_t>(ids[i])];
  if (params.score == RouterScore::kSoftmaxOfTop) softmax(weights);
  if (params.renormalize) {
    float sum = 0;
    for (float w : weights) sum += w;
    for (float& w : weights) w /= sum + 1e-20f;
  }
  for (float& w : weights) w *= params.scale;
}

}  // namespace

void CpuBackend::route(ConstMatrix logits, const RouterParams& params, std::span<std::int32_t> ids, std::span<float> weights) {
  const auto top = static_cast<std::size_t>(params.top_k);
  WEIR_CHECK(params.top_k > 0 && ids.size() == weights.size() && ids.size() == static_cast<std::size_t>(logits.rows) * top);
  WEIR_CHECK(params.groups >= 1 && logits.cols % params.groups == 0 && params.top_groups >= 1 && params.top_groups <= params.groups,
             "{} experts, {} of {} groups", logits.cols, params.top_groups, params.groups);
  const std::int64_t open = params.groups > 1 ? logits.cols / params.groups * params.top_groups : logits.cols;
  WEIR_CHECK(params.top_k <= open, "top {} of {} experts", params.top_k, open);
  for_tasks(logits.rows, logits.cols * (params.top_k + 4), [&](std::int64_t row, Scratch& scratch) {
    const auto at = static_cast<std::size_t>(row) * top;
    route_row(logits.row_span(row), params, ids.subspan(at, top), weights.subspan(at, top), scratch);
  });
}

}  // namespace weir::kernels
