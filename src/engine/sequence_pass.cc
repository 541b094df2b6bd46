// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence_pass.h"

#include <algorithm>

namespace weir::engine {
namespace {

constexpr std::int32_t kBlockTokens = 32;
constexpr std::int64_t kMostOutputs = 1 << 24;  // floats of one pass, so that rows of logits stay below 64 MiB
constexpr std::size_t kMostSequences = 64;      // with recurrent states, which cost memory each

std::int64_t blocks_for(std::int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

}  // namespace

SequencePass::SequencePass(model::Model& model, std::int32_t max_rows) : model_(&model), max_rows_(std::max(max_rows, 1)) {}

Status SequencePass::check(std::span<const SequenceInput> inputs) const {
  const std::int32_t vocabulary = model_->traits().vocab_size;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].ids.empty()) return fail(ErrorCode::kInvalidArgument, "input {} has no tokens", i);
    if (!inputs[i].types.empty() && inputs[i].types.size() != inputs[i].ids.size())
      return fail(ErrorCode::kInvalidArgument, "input {} has {} token types for {} tokens", i, inputs[i].types.size(),
                  inputs[i].ids.size());
    for (const TokenId id : inputs[i].ids)
      if (id < 0 || id >= vocabulary)
        return fail(ErrorCode::kInvalidArgument, "input {}: the token id {} is not in the vocabulary of {}", i, id, vocabulary);
    if (inputs[i].ids.size() > std::size_t{1} << 30) return fail(ErrorCode::kInvalidArgument, "input {} is too long", i);
  }
  return {};
}

// One past the last input of the group that begins at `begin`: as many as fit, and at least one.
std::size_t SequencePass::group_end(std::span<const SequenceInput> inputs, std::size_t begin, Rows rows, std::int64_t width) const {
  std::int64_t used = 0, rows_used = 0, outputs = 0;
  std::size_t end = begin;
  for (; end < inputs.size(); ++end) {
    const auto length = static_cast<std::int64_t>(inputs[end].ids.size());
    used += blocks_for(length) * kBlockTokens / 2;  // short ones count for the blocks that they leave empty
    rows_used += length;
    outputs += (rows == Rows::kAll ? length : 1) * width;
    if (end == begin) continue;
    const bool states = model_->traits().has_state() && end - begin >= kMostSequences;
    if (used > max_rows_ || rows_used > max_rows_ || outputs > kMostOutputs || states) break;
  }
  return end;
}

// Room for that many blocks, at least those of an ordinary pass.
Status SequencePass::reserve(std::int64_t blocks) {
  const model::Traits& traits = model_->traits();
  if (memory_ && memory_->blocks() >= (traits.has_attention() ? blocks : 0)) return {};
  const std::int64_t usual = blocks_for(max_rows_) * 2;  // short sequences leave their last blocks partly empty
  const std::int64_t count = traits.has_attention() ? std::max(blocks, usual) : 0;
  memory_.reset();
  memory_ = std::make_unique<model::SequenceMemory>(traits, static_cast<std::int32_t>(count), kBlockTokens,
                                                    traits.has_state() ? static_cast<std::int32_t>(kMostSequences) : 0,
                                                    model_->backend().kv_type());
  if (!memory_->status()) {
    const Status failed = memory_->status();
    memory_.reset();
    return failed;
  }
  blocks_.clear();
  for (std::int32_t b = 0; b < count; ++b) blocks_.emplace_back(b);
  return {};
}

// One forward pass; the wanted rows are in output_rows_ and end up in out_.
Status SequencePass::step(std::span<const kernels::SequenceSlice> slices, std::span<const TokenId> ids, std::span<const std::int32_t> types,
                          model::Output output) {
  const std::int64_t width = model_->output_width(output);
  const auto rows = static_cast<std::int64_t>(output_rows_.size());
  output_.resize(std::max(output_.size(), static_cast<std::size_t>(rows * width)));
  out_ = {output_.data(), rows, width};
  model::Batch batch;
  batch.tokens = ids;
  batch.slices = slices;
  batch.output_rows = output_rows_;
  batch.token_types = types;
  batch.output = output;
  return model_->forward(batch, *memory_, out_);
}

Status SequencePass::run_group(std::span<const SequenceInput> inputs, std::size_t begin, std::size_t end, Rows rows, model::Output output,
                               const Sink& sink) {
  std::int64_t needed = 0;
  for (std::size_t i = begin; i < end; ++i) needed += blocks_for(static_cast<std::int64_t>(inputs[i].ids.size()));
  WEIR_TRY(reserve(needed));
  ids_.clear(), types_.clear(), slices_.clear(), output_rows_.clear();
  std::size_t block = 0;
  const bool typed = std::any_of(inputs.begin() + static_cast<std::ptrdiff_t>(begin), inputs.begin() + static_cast<std::ptrdiff_t>(end),
                                 [](const SequenceInput& i) { return !i.types.empty(); });
  for (std::size_t i = begin; i < end; ++i) {
    const SequenceInput& input = inputs[i];
    const auto first = static_cast<std::int32_t>(ids_.size()), count = static_cast<std::int32_t>(input.ids.size());
    const auto own = static_cast<std::size_t>(blocks_for(count));
    kernels::SequenceSlice slice{.first_row = first, .row_count = count, .rope_length = count, .blocks = {}, .state = {}, .prompt = true};
    if (!blocks_.empty()) slice.blocks = std::span(blocks_).subspan(block, own);
    if (model_->traits().has_state()) {
      slice.state = StateSlot(static_cast<std::int32_t>(i - begin));
      memory_->clear_state(slice.state);
    }
    block += own;
    slices_.push_back(slice);
    ids_.insert(ids_.end(), input.ids.begin(), input.ids.end());
    types_.insert(types_.end(), input.types.begin(), input.types.end());
    if (typed) types_.resize(ids_.size(), 0);
    const std::int32_t from = rows == Rows::kLast ? count - 1 : 0, to = rows == Rows::kFirst ? 1 : count;
    for (std::int32_t r = from; r < to; ++r) output_rows_.push_back(first + r);
  }
  WEIR_TRY(step(slices_, ids_, types_, output));
  std::int64_t row = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const auto count = static_cast<std::int64_t>(inputs[i].ids.size()), given = rows == Rows::kAll ? count : 1;
    WEIR_TRY(sink(i, rows == Rows::kLast ? count - 1 : 0, out_.row_range(row, given)));
    row += given;
  }
  return {};
}

// A causal sequence in pieces.
Status SequencePass::run_long(const SequenceInput& input, std::size_t index, Rows rows, model::Output output, const Sink& sink) {
  const auto length = static_cast<std::int64_t>(input.ids.size()), width = model_->output_width(output);
  const std::int64_t piece = rows == Rows::kAll ? std::clamp<std::int64_t>(kMostOutputs / width, 1, max_rows_) : max_rows_;
  WEIR_TRY(reserve(blocks_for(length)));
  if (model_->traits().has_state()) memory_->clear_state(StateSlot(0));
  for (std::int64_t begin = 0; begin < length; begin += piece) {
    const std::int64_t count = std::min(piece, length - begin);
    const bool last = begin + count == length;
    output_rows_.clear();
    const std::int64_t from = rows == Rows::kLast ? (last ? count - 1 : count) : 0;
    const std::int64_t to = rows == Rows::kFirst ? (begin == 0 ? 1 : 0) : count;
    for (std::int64_t r = from; r < to; ++r) output_rows_.push_back(static_cast<std::int32_t>(r));
    kernels::SequenceSlice slice{.row_count = static_cast<std::int32_t>(count),
                                 .first_position = static_cast<std::int32_t>(begin),
                                 .rope_length = static_cast<std::int32_t>(length),
                                 .blocks = {},
                                 .state = {},
                                 .prompt = true};
    if (!blocks_.empty()) slice.blocks = std::span(blocks_).first(static_cast<std::size_t>(blocks_for(length)));
    if (model_->traits().has_state()) slice.state = StateSlot(0);
    const auto at = static_cast<std::size_t>(begin), many = static_cast<std::size_t>(count);
    WEIR_TRY(step({&slice, 1}, input.ids.subspan(at, many), input.types.empty() ? input.types : input.types.subspan(at, many), output));
    if (from < to) WEIR_TRY(sink(index, begin + from, out_));
  }
  return {};
}

Status SequencePass::run(std::span<const SequenceInput> inputs, Rows rows, model::Output output, const Sink& sink) try {
  WEIR_TRY(check(inputs));
  const std::int64_t width = model_->output_width(output);
  const bool whole = !model_->traits().attention.causal || model_->traits().encoder;
  Status status;
  for (std::size_t begin = 0; status && begin < inputs.size();) {
    const std::size_t end = group_end(inputs, begin, rows, width);
    const auto length = static_cast<std::int64_t>(inputs[begin].ids.size());
    const bool large = length > max_rows_ || (rows == Rows::kAll && length * width > kMostOutputs);
    status = large && !whole ? run_long(inputs[begin], begin, rows, output, sink) : run_group(inputs, begin, end, rows, output, sink);
    begin = large && !whole ? begin + 1 : end;
  }
  if (memory_ && memory_->blocks() > blocks_for(max_rows_) * 2) memory_.reset();
  if (static_cast<std::int64_t>(output_.size()) > kMostOutputs) std::vector<float>().swap(output_);
  return status;
} catch (const std::bad_alloc&) {
  memory_.reset();
  return fail(ErrorCode::kExhausted, "no memory for {} sequences", inputs.size());
}

}  // namespace weir::engine
