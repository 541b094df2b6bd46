// SPDX-License-Identifier: Apache-2.0
// The head of a classifier or reranker. How many labels there are is what the last matrix says.
#include <utility>

#include "model/weights_loader.h"

namespace weir::model {
namespace {

constexpr std::int64_t kMaxLabels = 1 << 20;

}  // namespace

Status WeightReader::classifier() {
  if (plan_.names.classifier_out.empty()) return {};
  const bool transposed = std::exchange(plan_.transposed, false);  // GPT-2's matrices are, its classifier is not
  Status status = classifier_parts();
  plan_.transposed = transposed;
  return status;
}

Status WeightReader::classifier_parts() {
  const Names& names = plan_.names;
  Traits& traits = plan_.traits;
  ClassifierWeights& out = weights_.classifier;
  if (!names.classifier_dense.empty()) {
    WEIR_ASSIGN(out.dense, linear(names.classifier_dense, traits.hidden, traits.hidden, plan_.classifier_bias));
  }
  if (!names.classifier_norm.empty()) {
    out.norm.present = true;
    WEIR_ASSIGN(out.norm.weight, source_.vector(names.classifier_norm + ".weight", traits.hidden));
    WEIR_ASSIGN(out.norm.bias, bias(names.classifier_norm, traits.hidden, Bias::kOptional));
  }
  const std::string last = names.classifier_out + ".weight";
  const TensorView* view = source_.peek(last);
  if (!view) return fail(ErrorCode::kCorrupt, "tensor {}: missing", last);
  const std::int64_t labels = view->rank() == 1 ? 1 : view->rows();  // GGUF drops a dimension of 1
  if (labels < 1 || labels > kMaxLabels) return fail(ErrorCode::kCorrupt, "tensor {}: shape {}", last, shape_string(view->shape));
  const std::size_t named = traits.classifier.names.size();
  if (named != 0 && named != static_cast<std::size_t>(labels))
    return fail(ErrorCode::kCorrupt, "tensor {}: {} labels, but the file names {}", last, labels, named);
  WEIR_ASSIGN(out.out, linear(names.classifier_out, labels, traits.hidden, plan_.classifier_bias));
  traits.classifier.labels = static_cast<std::int32_t>(labels);
  return {};
}

}  // namespace weir::model
