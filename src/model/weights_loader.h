// SPDX-License-Identifier: Apache-2.0
// Carries out a Plan: takes every tensor by its role, checks its shape against the traits, and leaves matrices as views.
#pragma once

#include "base/result.h"
#include "model/plan.h"
#include "model/weights.h"

namespace weir::model {

// Fills weights and completes plan.traits (vocabulary size, layouts that depend on the file). kCorrupt or kUnsupported names
// the tensor. Tensors that nobody asked for are an error, unless they are known to play no part in the result.
Status load_weights(Plan& plan, Weights& weights);

// The parts, one file each.
class WeightReader {
 public:
  WeightReader(Plan& plan, Weights& weights) : plan_(plan), weights_(weights), source_(plan.tensors) {}

  // Everything by base name; adds ".weight" and ".bias". Vectors get the family's conventions.
  Result<Linear> linear(const std::string& base, std::int64_t out, std::int64_t in, Bias bias);
  Result<NormWeights> norm(const std::string& base, std::int64_t count, float offset);
  Result<NormWeights> norm(const std::string& base, std::int64_t count) { return norm(base, count, plan_.norm_offset); }
  Result<Vector> bias(const std::string& base, std::int64_t count, Bias policy);

  Status globals();
  Status layer(std::int32_t index, LayerWeights& out);

 private:
  Status head();
  bool saved_without_head() const;
  Status classifier();  // weights_classifier.cc
  Status classifier_parts();
  Status norms(const std::string& prefix, LayerWeights& out);
  Status attention(const std::string& prefix, AttentionWeights& out);  // weights_attention.cc
  Status fused_qkv(const std::string& base, AttentionWeights& out);
  Result<NormWeights> head_norm(const std::string& base, std::int64_t heads);
  Status qk_norms(const std::string& prefix, AttentionWeights& out);
  Status latent(const std::string& prefix, LatentWeights& out);  // weights_latent.cc
  Status latent_queries(const std::string& prefix, LatentWeights& out);
  Status latent_up(const std::string& prefix, LatentWeights& out);
  Status recurrent(MixerKind kind, const std::string& prefix, RecurrentWeights& out);  // weights_recurrent.cc
  Status mamba2(const std::string& prefix, RecurrentWeights& out);
  Status gated_delta(const std::string& prefix, RecurrentWeights& out);
  Status interleaved_delta(const std::string& prefix, RecurrentWeights& out);
  Status short_conv(const std::string& prefix, RecurrentWeights& out);
  Result<Vector> decay(const std::string& name, std::int64_t count);
  Result<Linear> picked_rows(const std::string& base, std::int64_t rows, std::int64_t cols, const std::vector<std::int64_t>& order);
  Status ffn(const std::string& prefix, const FfnNames& names, std::int64_t inner, bool gated, FfnWeights& out);
  Status split_gate_up(const TensorView& view, std::int64_t inner, Vector bias, FfnWeights& out);
  Status experts(const std::string& prefix, ExpertWeights& out);  // weights_experts.cc
  Status expert_tensors(const std::string& prefix, ExpertWeights& out);
  Status stacked_experts(const std::string& prefix, ExpertWeights& out);
  Status interleaved_experts(const std::string& prefix, ExpertWeights& out);
  Status mxfp4_experts(const std::string& prefix, ExpertWeights& out);
  Status shared_experts(const std::string& prefix, ExpertWeights& out);
  std::byte* own(std::size_t bytes);  // a zeroed buffer that lives as long as the weights

  Plan& plan_;
  Weights& weights_;
  TensorSource& source_;
};

}  // namespace weir::model
