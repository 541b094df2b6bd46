// SPDX-License-Identifier: Apache-2.0
// The classification head: a pooled state → dense → activation → norm → labels, where all but the last may be absent.
#include "model/model.h"
#include "model/pass.h"

namespace weir::model {

namespace {

// Everything before the labels, in `inner`.
void dense_part(kernels::Backend& backend, const Traits& traits, const ClassifierWeights& w, ConstMatrix states, Matrix inner) {
  const LinearJob dense = job(states, w.dense, inner);
  backend.linear({&dense, 1});
  switch (traits.classifier.activation) {
    case HeadActivation::kNone: break;
    case HeadActivation::kTanh: backend.scale(1, 1, inner); break;
    case HeadActivation::kRelu: backend.activate(Activation::kRelu, inner, inner); break;
    case HeadActivation::kGelu: backend.activate(Activation::kGeluErf, inner, inner); break;
  }
  if (!w.norm.present) return;
  kernels::NormParams params;
  params.kind = traits.norm;
  params.epsilon = traits.norm_epsilon;
  params.weight = data_or_null(w.norm.weight);
  params.bias = data_or_null(w.norm.bias);
  backend.norm(inner, params, inner);
}

}  // namespace

Status Model::classify(ConstMatrix states, Matrix out) try {
  const ClassifierWeights& w = weights_.classifier;
  if (traits_.classifier.labels == 0) return fail(ErrorCode::kUnsupported, "this {} model has no classification head", traits_.family);
  WEIR_CHECK(states.cols == traits_.hidden && out.rows == states.rows && out.cols == traits_.classifier.labels);
  std::vector<float> buffer;
  ConstMatrix x = states;
  if (w.dense) {
    buffer.resize(static_cast<std::size_t>(states.rows * w.dense.weight->out()));
    const Matrix inner(buffer.data(), states.rows, w.dense.weight->out());
    dense_part(*backend_, traits_, w, states, inner);
    x = inner;
  }
  const LinearJob labels = job(x, w.out, out);
  backend_->linear({&labels, 1});
  return {};
} catch (const std::bad_alloc&) {
  return fail(ErrorCode::kExhausted, "no memory to classify {} rows", states.rows);
}

}  // namespace weir::model
