// SPDX-License-Identifier: Apache-2.0
// The transformer on one page: embed, layers of a mixer and a feed-forward part around the residual stream, final norm, head.
// Every row walks through alone; rows of one sequence meet only in the mixers. What differs between families is Traits.
#include <algorithm>
#include <numeric>

#include "model/adapter.h"
#include "model/adapter_rows.h"
#include "model/batch_check.h"
#include "model/layers/layers.h"
#include "model/model.h"
#include "model/rope_tables.h"
#include "model/scratch.h"

namespace weir::model {

namespace {

// The normalised input of a sublayer, or the stream itself when this model has no norm there.
ConstMatrix normalised(const Pass& pass, const NormWeights& weights, ConstMatrix stream) {
  if (!weights.present) return stream;
  const Matrix out = pass.matrix(stream.cols);
  norm(pass, weights, pass.traits.norm, 0, stream, out);
  return out;
}

// The same, left to the first product where that reads it alone (`fuses`).
Input sublayer_input(const Pass& pass, bool fuses, const NormWeights& weights, ConstMatrix stream) {
  if (!fuses || !weights.present) return normalised(pass, weights, stream);
  kernels::InputStep& step = pass.arena.array<kernels::InputStep>(1)[0];
  step.norm = norm_params(pass, weights, pass.traits.norm, 0, stream.cols);
  return {stream, &step};
}

void mix(const Pass& pass, const Layer& layer, Input x, Target target) {
  switch (layer.traits.mixer) {
    case MixerKind::kAttention: return mix_attention(pass, layer, x, target);
    case MixerKind::kLatentAttention: return mix_latent_attention(pass, layer, x.x, target);
    case MixerKind::kMamba2: return mix_mamba2(pass, layer, x.x, target);
    case MixerKind::kGatedDelta: return mix_gated_delta(pass, layer, x.x, target);
    case MixerKind::kShortConv: return mix_short_conv(pass, layer, x.x, target);
  }
}

void feed(const Pass& pass, const Layer& layer, Input x, Target target) {
  if (layer.traits.ffn == FfnKind::kExperts) return feed_forward_experts(pass, layer, x.x, target);
  feed_forward(pass, layer, x, target);
}

// stream += residual_scale · post_norm(part(x)), at once where nothing stands between. Mixer and feed-forward part have buffers of their
// own until the layer ends: memory that both used would hold rows of one thread, then of another, and travel between their cores.
template <class Part>
void add_part(const Pass& pass, const Layer& layer, Part part, Input x, const NormWeights& post_norm, Matrix stream) {
  const bool apart = x.step || x.x.data != stream.data;
  if (!post_norm.present && pass.traits.residual_scale == 1 && apart) return part(pass, layer, x, {stream, true});
  const Matrix out = pass.matrix(stream.cols);
  part(pass, layer, x, {out, false});
  if (post_norm.present) norm(pass, post_norm, pass.traits.norm, 0, out, out);
  pass.backend.add(out, pass.traits.residual_scale, stream);
}

void run_layer(const Pass& pass, const Layer& layer, Matrix stream) {
  const Arena::Scope scope(pass.arena);
  const LayerWeights& w = layer.weights;
  const bool feeds = layer.traits.ffn != FfnKind::kNone, parallel = feeds && pass.traits.parallel;
  const bool mixer_fuses = !parallel && layer.traits.mixer == MixerKind::kAttention;
  const bool ffn_fuses = !parallel && layer.traits.ffn != FfnKind::kExperts;

  const Input x = sublayer_input(pass, mixer_fuses, w.mixer_norm, stream);
  const Input y = !parallel ? ConstMatrix() : w.ffn_norm.present ? normalised(pass, w.ffn_norm, stream) : x.x;
  add_part(pass, layer, mix, x, w.post_mixer_norm, stream);
  if (w.after_mixer.present) norm(pass, w.after_mixer, pass.traits.norm, 0, stream, stream);
  if (feeds) add_part(pass, layer, feed, parallel ? y : sublayer_input(pass, ffn_fuses, w.ffn_norm, stream), w.post_ffn_norm, stream);
  if (w.after_ffn.present) norm(pass, w.after_ffn, pass.traits.norm, 0, stream, stream);
}

// stream += the table's rows; embeddings of positions and token types.
void add_embedding(const Pass& pass, const kernels::Weight& table, std::span<const std::int32_t> ids, Matrix stream) {
  const Matrix rows = pass.matrix(stream.cols);
  pass.backend.embed(table, ids, 1, rows);
  pass.backend.add(rows, 1, stream);
}

// stream += what an adapter adds to the embedding of its rows.
void adapt_embedding(const Pass& pass, const AdaptedRows& rows, std::span<const TokenId> tokens, Matrix stream) {
  const EmbeddingChange* change = rows.adapter->embedding();
  if (!change) return;
  const Matrix small = pass.arena.matrix(rows.count, change->down.in());
  const std::span<const TokenId> ids = tokens.subspan(static_cast<std::size_t>(rows.begin), static_cast<std::size_t>(rows.count));
  pass.backend.embed(change->down, ids, pass.traits.embedding_scale, small);
  const LinearJob one{small, &change->up, nullptr, stream.row_range(rows.begin, rows.count), true};
  pass.backend.linear({&one, 1});
}

void embed(const Pass& pass, const Weights& weights, const Batch& batch, Matrix stream) {
  const Arena::Scope scope(pass.arena);
  pass.backend.embed(weights.token_embedding, batch.tokens, pass.traits.embedding_scale, stream);
  for (const AdaptedRows& rows : pass.adapted) adapt_embedding(pass, rows, batch.tokens, stream);
  if (weights.position_embedding) {
    const std::span<std::int32_t> positions = pass.arena.array<std::int32_t>(batch.tokens.size());
    for (const kernels::SequenceSlice& slice : batch.slices) {
      const auto rows = positions.subspan(static_cast<std::size_t>(slice.first_row), static_cast<std::size_t>(slice.row_count));
      std::iota(rows.begin(), rows.end(), slice.first_position + pass.traits.position_offset);
    }
    add_embedding(pass, *weights.position_embedding, positions, stream);
  }
  if (weights.type_embedding) {
    const bool given = !batch.token_types.empty();
    add_embedding(pass, *weights.type_embedding, given ? batch.token_types : pass.arena.array<std::int32_t>(batch.tokens.size()), stream);
  }
  if (weights.embedding_norm.present) norm(pass, weights.embedding_norm, pass.traits.norm, 0, stream, stream);
}

// The final norm and the head on the wanted rows alone: no row costs a vocabulary of memory that nobody asked for. The head has one
// arithmetic for both phases: mostly a few rows meet it.
void finish(const Pass& given, const Weights& weights, const OrderedBatch& ordered, bool hidden, ConstMatrix stream, Matrix out) {
  Pass pass = given;
  pass.prompt_rows = 0;
  const std::span<const std::int32_t> output_rows = ordered.batch.output_rows;
  if (output_rows.empty()) return;
  const Traits& t = pass.traits;
  const Matrix states = hidden ? out : pass.arena.matrix(out.rows, stream.cols);
  pass.backend.gather_rows(stream, output_rows, states);
  if (weights.final_norm.present) norm(pass, weights.final_norm, t.norm, 0, states, states);
  if (hidden) return;
  const LinearJob head = job(states, weights.head, out);
  linear(pass, {&head, 1}, ordered.outputs);
  if (t.logit_scale != 1 || t.logit_softcap > 0) pass.backend.scale(t.logit_scale, t.logit_softcap, out);
}

void fill_ropes(const Pass& pass, std::vector<ConstMatrix>& tables) {
  tables.clear();
  for (const RopeTraits& rope : pass.traits.ropes) {
    const Matrix table = pass.matrix(rope.rotary_dim);
    fill_rope_table(rope, pass.slices, table);
    tables.push_back(table);
  }
}

// Rows as the caller had them.
ConstMatrix in_given_order(const Pass& pass, const OrderedBatch& ordered, ConstMatrix states) {
  if (ordered.origin.empty()) return states;
  const Matrix out = pass.matrix(states.cols);
  for (std::int64_t r = 0; r < states.rows; ++r)
    std::ranges::copy(states.row_span(r), out.row(ordered.origin[static_cast<std::size_t>(r)]));
  return out;
}

}  // namespace

Status Model::forward(const Batch& given, SequenceMemory& memory, Matrix out) try {
  if (!memory.status()) return memory.status();
  WEIR_TRY(check_batch(traits_, weights_, memory, given, scratch_->state_used));
  WEIR_TRY(check_adapters(*this, given));
  const bool hidden = traits_.encoder || given.output == Output::kHidden;
  WEIR_CHECK(out.rows == static_cast<std::int64_t>(given.output_rows.size()) && (out.rows == 0 || out.cols == output_width(given.output)));
  if (!hidden && !weights_.head)
    return fail(ErrorCode::kUnsupported, "this {} model was saved without a head: it has no logits", traits_.family);
  if (given.tokens.empty()) return {};

  if (scratch_->mover) scratch_->move_weights(static_cast<std::int64_t>(given.tokens.size()));
  scratch_->arena.reset();
  const OrderedBatch ordered = order_rows(given, scratch_->arena);
  const Batch& batch = ordered.batch;
  const auto rows = static_cast<std::int64_t>(batch.tokens.size());
  Pass pass{*backend_, traits_, memory, batch.slices, {}, scratch_->arena, rows, ordered.prompt_rows};
  fill_ropes(pass, scratch_->ropes);
  pass.ropes = scratch_->ropes;
  pass.adapted = ordered.rows;
  scratch_->fill_further_slices(batch);
  pass.further_slices = scratch_->further_slices;

  const Matrix stream = pass.matrix(traits_.hidden);
  embed(pass, weights_, batch, stream);
  const auto probe = [&](std::int32_t layer, ConstMatrix states) {
    if (probe_) probe_(layer, in_given_order(pass, ordered, states));
  };
  probe(-1, stream);
  const auto layers = static_cast<std::int32_t>(traits_.layers.size());
  for (std::int32_t i = 0; i < layers; ++i) {
    const auto index = static_cast<std::size_t>(i);
    run_layer(pass, {i, traits_.layers[index], weights_.layers[index]}, stream);
    probe(i, stream);
  }
  if (probe_) probe(layers, normalised(pass, weights_.final_norm, stream));
  finish(pass, weights_, ordered, hidden, stream, out);
  return {};
} catch (const std::bad_alloc&) {
  return fail(ErrorCode::kExhausted, "no memory for the activations of {} rows: use smaller chunks", given.tokens.size());
}

}  // namespace weir::model
