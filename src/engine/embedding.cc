// SPDX-License-Identifier: Apache-2.0
#include "engine/embedding.h"

#include <cmath>

#include "engine/runner.h"

namespace weir::engine {

Result<std::vector<float>> encode_hidden(LoadedModel& loaded, std::span<const TokenId> ids) {
  if (!loaded.model->traits().encoder) return fail(ErrorCode::kUnsupported, "{} is not an encoder", loaded.path.string());
  if (ids.empty()) return fail(ErrorCode::kInvalidArgument, "nothing to embed: the text gives no tokens");
  Runner runner(*loaded.model, {.max_tokens = static_cast<std::int64_t>(ids.size())});
  WEIR_ASSIGN(const SeqId sequence, runner.open());
  const Piece pieces[] = {{sequence, ids, Outputs::kAll}};
  WEIR_ASSIGN(const kernels::Matrix rows, runner.step(pieces));
  return std::vector<float>(rows.data, rows.data + rows.rows * rows.cols);
}

std::vector<float> mean_rows(std::span<const float> hidden, std::size_t columns) {
  std::vector<double> sum(columns, 0.0);
  const std::size_t rows = hidden.size() / columns;
  for (std::size_t i = 0; i < rows * columns; ++i) sum[i % columns] += hidden[i];
  std::vector<float> mean(columns);
  for (std::size_t c = 0; c < columns; ++c) mean[c] = static_cast<float>(sum[c] / static_cast<double>(rows));
  return mean;
}

void normalize_l2(std::span<float> vector) {
  double squares = 0;
  for (float v : vector) squares += static_cast<double>(v) * v;
  const double norm = std::sqrt(squares);
  if (norm > 0)
    for (float& v : vector) v = static_cast<float>(v / norm);
}

Result<std::vector<float>> pooler_output(LoadedModel& loaded, std::span<const float> first_row) {
  const model::Linear& pooler = loaded.model->weights().pooler;
  if (!pooler) return fail(ErrorCode::kUnsupported, "{} has no pooler", loaded.path.string());
  std::vector<float> out(static_cast<std::size_t>(pooler.weight->out()));
  const kernels::LinearJob job{
      .x = {first_row.data(), 1, static_cast<std::int64_t>(first_row.size())},
      .weight = &*pooler.weight,
      .bias = pooler.bias.empty() ? nullptr : pooler.bias.data(),
      .out = {out.data(), 1, static_cast<std::int64_t>(out.size())},
  };
  loaded.backend->linear({&job, 1});
  for (float& v : out) v = std::tanh(v);
  return out;
}

}  // namespace weir::engine
