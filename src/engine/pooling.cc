// SPDX-License-Identifier: Apache-2.0
#include "engine/pooling.h"

#include <algorithm>
#include <cmath>

namespace weir::engine {

using model::Pooling;

Pooler::Pooler(Pooling mode, std::int64_t hidden, std::int64_t skip)
    : mode_(mode), skip_(skip), sums_(static_cast<std::size_t>(hidden), 0.0) {}

void Pooler::add_row(std::int64_t position, std::span<const float> row) {
  const bool first = count_++ == 0;
  const double weight = mode_ == Pooling::kWeightedMean ? static_cast<double>(position + 1) : 1;
  weights_ += weight;
  switch (mode_) {
    case Pooling::kNone: rows_.insert(rows_.end(), row.begin(), row.end()); return;
    case Pooling::kCls:
      if (first) std::ranges::copy(row, sums_.begin());
      return;
    case Pooling::kLast: std::ranges::copy(row, sums_.begin()); return;
    case Pooling::kMax:
      for (std::size_t i = 0; i < row.size(); ++i)  // a NaN stays, so that it is seen
        if (first || !(static_cast<double>(row[i]) <= sums_[i])) sums_[i] = std::isnan(sums_[i]) ? sums_[i] : static_cast<double>(row[i]);
      return;
    case Pooling::kMean:
    case Pooling::kMeanSqrt:
    case Pooling::kWeightedMean:
      for (std::size_t i = 0; i < row.size(); ++i) sums_[i] += weight * static_cast<double>(row[i]);
  }
}

void Pooler::add(std::int64_t first, kernels::ConstMatrix rows) {
  for (std::int64_t r = 0; r < rows.rows; ++r)
    if (first + r >= skip_) add_row(first + r, rows.row_span(r));
}

std::vector<float> Pooler::finish() const {
  if (count_ == 0) return {};
  if (mode_ == Pooling::kNone) return rows_;
  const bool plain = mode_ == Pooling::kCls || mode_ == Pooling::kLast || mode_ == Pooling::kMax;
  const double divisor = plain ? 1 : mode_ == Pooling::kMeanSqrt ? std::sqrt(weights_) : weights_;
  std::vector<float> out(sums_.size());
  std::ranges::transform(sums_, out.begin(), [&](double s) { return static_cast<float>(s / divisor); });
  return out;
}

void normalize_l2(std::span<float> vector) {
  double squares = 0;
  for (const float v : vector) squares += static_cast<double>(v) * static_cast<double>(v);
  const double norm = std::sqrt(squares);
  if (norm > 0)
    for (float& v : vector) v = static_cast<float>(static_cast<double>(v) / norm);
}

namespace {

std::vector<float> run_dense(const DenseStep& step, const std::vector<float>& x) {
  std::vector<float> out(static_cast<std::size_t>(step.out));
  for (std::size_t o = 0; o < out.size(); ++o) {
    double sum = step.bias.empty() ? 0 : static_cast<double>(step.bias[o]);
    const float* row = step.weight.data() + o * x.size();
    for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(row[i]) * static_cast<double>(x[i]);
    out[o] = static_cast<float>(step.tanh ? std::tanh(sum) : sum);
  }
  return out;
}

}  // namespace

std::vector<float> finish_vector(const PoolingSpec& spec, std::vector<float> pooled, std::int64_t dimensions, bool normalize) {
  for (const DenseStep& step : spec.dense) pooled = run_dense(step, pooled);
  if (dimensions > 0) pooled.resize(std::min(pooled.size(), static_cast<std::size_t>(dimensions)));
  if (normalize) normalize_l2(pooled);
  return pooled;
}

Status check_dimensions(const PoolingSpec& spec, std::int64_t dimensions) {
  if (dimensions == spec.size) return {};
  if (dimensions < 1 || dimensions > spec.size)
    return fail(ErrorCode::kInvalidArgument, "{} dimensions: this model's vectors have {}", dimensions, spec.size);
  if (spec.any_dimension || dimensions == spec.cut_dimension || std::ranges::find(spec.dimensions, dimensions) != spec.dimensions.end())
    return {};
  if (spec.dimensions.empty())
    return fail(ErrorCode::kInvalidArgument, "{} dimensions: this model's vectors have {} and were not trained to be cut", dimensions,
                spec.size);
  std::string possible;
  for (const std::int64_t d : spec.dimensions) possible += fmt::format("{}, ", d);
  return fail(ErrorCode::kInvalidArgument, "{} dimensions: this model's vectors may have {}{}", dimensions, possible, spec.size);
}

}  // namespace weir::engine
