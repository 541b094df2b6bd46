// SPDX-License-Identifier: Apache-2.0
#include "engine/runner.h"

#include <algorithm>

#include "base/check.h"

namespace weir::engine {
namespace {

// Blocks so that `max_tokens` fit even when each sequence leaves its last block partly empty.
std::int32_t block_count(const model::Traits& traits, const RunnerOptions& options) {
  if (!traits.has_attention()) return 0;
  const std::int64_t whole = (options.max_tokens + options.block_tokens - 1) / options.block_tokens;
  return static_cast<std::int32_t>(std::min<std::int64_t>(whole + options.max_sequences - 1, INT32_MAX));
}

std::int32_t slot_count(const model::Traits& traits, const RunnerOptions& options) {
  return traits.has_state() ? options.max_sequences : 0;
}

std::int64_t wanted_rows(const Piece& piece) {
  if (piece.outputs == Outputs::kNone) return 0;
  return piece.outputs == Outputs::kLast ? 1 : static_cast<std::int64_t>(piece.tokens.size());
}

}  // namespace

Runner::Runner(model::Model& model, const RunnerOptions& options)
    : model_(model),
      options_(options),
      uses_blocks_(model.traits().has_attention()),
      blocks_(block_count(model.traits(), options), options.block_tokens),
      slots_(slot_count(model.traits(), options)),
      memory_(model.traits(), blocks_.capacity(), options.block_tokens, slots_.capacity(),
              options.kv_type.value_or(model.backend().kv_type())) {}

Runner::~Runner() = default;

Result<SeqId> Runner::open(std::int32_t rope_length) {
  if (static_cast<std::int32_t>(sequences_.size()) >= options_.max_sequences)
    return fail(ErrorCode::kExhausted, "all {} sequences are in use", options_.max_sequences);
  Sequence sequence{.blocks = kvcache::SequenceBlocks(blocks_), .state = {}, .length = 0, .rope_length = rope_length};
  if (slots_.capacity() > 0) {
    WEIR_ASSIGN(sequence.state, slots_.allocate());
    memory_.clear_state(sequence.state);
  }
  const SeqId id(next_id_++);
  sequences_.emplace(id, std::move(sequence));
  return id;
}

void Runner::close(SeqId id) {
  const auto found = sequences_.find(id);
  WEIR_CHECK(found != sequences_.end(), "sequence {}", id.value);
  if (found->second.state.valid()) slots_.release(found->second.state);
  sequences_.erase(found);
}

std::int64_t Runner::length(SeqId id) const { return sequences_.at(id).length; }

Status Runner::truncate(SeqId id, std::int64_t length) {
  Sequence& sequence = sequences_.at(id);
  WEIR_CHECK(length >= 0 && length <= sequence.length, "truncate to {} of {}", length, sequence.length);
  if (length == sequence.length) return {};
  if (sequence.state.valid()) return fail(ErrorCode::kUnsupported, "a model with recurrent layers cannot take tokens back");
  if (uses_blocks_) sequence.blocks.truncate(length);
  sequence.length = length;
  return {};
}

std::int64_t Runner::free_tokens() const { return static_cast<std::int64_t>(blocks_.available()) * blocks_.block_tokens(); }

// Room for all pieces, or an error that leaves everything as it was.
Status Runner::reserve(std::span<const Piece> pieces) {
  if (!uses_blocks_) return {};
  std::int64_t needed = 0;
  for (const Piece& piece : pieces) {
    const Sequence& sequence = sequences_.at(piece.sequence);
    needed += sequence.blocks.blocks_to_grow(sequence.length + static_cast<std::int64_t>(piece.tokens.size()));
  }
  if (needed > blocks_.available())
    return fail(ErrorCode::kExhausted, "the context is full: {} more KV blocks of {} tokens are needed and {} are free", needed,
                blocks_.block_tokens(), blocks_.available());
  for (const Piece& piece : pieces) {
    Sequence& sequence = sequences_.at(piece.sequence);
    WEIR_ASSIGN(const auto copy, sequence.blocks.grow(sequence.length + static_cast<std::int64_t>(piece.tokens.size())));
    if (copy) memory_.copy_block(0, copy->from, copy->to, copy->tokens);
  }
  return {};
}

void Runner::append_rows(const Piece& piece) {
  const Sequence& sequence = sequences_.at(piece.sequence);
  const auto first = static_cast<std::int32_t>(tokens_.size());
  const auto count = static_cast<std::int32_t>(piece.tokens.size());
  tokens_.insert(tokens_.end(), piece.tokens.begin(), piece.tokens.end());
  slices_.push_back({.first_row = first,
                     .row_count = count,
                     .first_position = static_cast<std::int32_t>(sequence.length),
                     .rope_length = sequence.rope_length,
                     .blocks = sequence.blocks.blocks(),
                     .state = sequence.state,
                     .prompt = piece.prompt});
  for (std::int32_t r = count - static_cast<std::int32_t>(wanted_rows(piece)); r < count; ++r) output_rows_.push_back(first + r);
}

Result<kernels::Matrix> Runner::step(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    WEIR_CHECK(sequences_.contains(piece.sequence), "sequence {}", piece.sequence.value);
    if (piece.tokens.empty()) return fail(ErrorCode::kInvalidArgument, "a piece without tokens");
  }
  WEIR_TRY(reserve(pieces));
  tokens_.clear();
  slices_.clear();
  output_rows_.clear();
  for (const Piece& piece : pieces) append_rows(piece);

  const model::Traits& traits = model_.traits();
  const std::int64_t columns = traits.encoder ? traits.hidden : traits.vocab_size;
  const auto rows = static_cast<std::int64_t>(output_rows_.size());
  if (static_cast<std::int64_t>(output_.size()) < rows * columns) output_.resize(static_cast<std::size_t>(rows * columns));
  const kernels::Matrix out(output_.data(), rows, columns);
  WEIR_TRY(model_.forward({.tokens = tokens_, .slices = slices_, .output_rows = output_rows_, .token_types = {}}, memory_, out));
  for (const Piece& piece : pieces) sequences_.at(piece.sequence).length += static_cast<std::int64_t>(piece.tokens.size());
  return out;
}

Result<kernels::Matrix> Runner::prefill(SeqId sequence, std::span<const TokenId> tokens, std::int32_t chunk) {
  if (tokens.empty()) return fail(ErrorCode::kInvalidArgument, "an empty prompt");
  kernels::Matrix out;
  const auto size = static_cast<std::size_t>(std::max(chunk, 1));
  for (std::size_t begin = 0; begin < tokens.size(); begin += size) {
    const auto part = tokens.subspan(begin, std::min(size, tokens.size() - begin));
    const bool last = begin + part.size() == tokens.size();
    const Piece pieces[] = {{sequence, part, last ? Outputs::kLast : Outputs::kNone, true}};
    WEIR_ASSIGN(out, step(pieces));
  }
  return out;
}

}  // namespace weir::engine
