// SPDX-License-Identifier: Apache-2.0
// Runs sequences on a model, with no policy: it owns their memory (KV blocks, recurrent state) and its bookkeeping, turns
// pieces of sequences into one batch, and hands back the logits that were asked for. What to run next is the caller's choice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kernels/matrix.h"
#include "kvcache/block_allocator.h"
#include "kvcache/sequence_blocks.h"
#include "kvcache/state_slots.h"
#include "model/model.h"

namespace weir::engine {

struct RunnerOptions {
  std::int64_t max_tokens = 4096;  // over all sequences, rounded up to whole blocks for each
  std::int32_t block_tokens = 32;
  std::int32_t max_sequences = 1;
  std::optional<DType> kv_type = {};  // F32, F16, BF16 or Q8_0; none: what suits the model's backend best
};

enum class Outputs { kNone, kLast, kAll };  // rows of a piece whose logits (encoders: hidden states) are wanted

// The next tokens of one sequence.
struct Piece {
  SeqId sequence;
  std::span<const TokenId> tokens;
  Outputs outputs = Outputs::kLast;
  bool prompt = false;  // positions of a prompt: kernels::SequenceSlice::prompt
};

class Runner {
 public:
  Runner(model::Model& model, const RunnerOptions& options);
  ~Runner();

  // A new, empty sequence. `rope_length` picks between short and long rope factors for its whole life (the prompt's length);
  // 0 lets each piece decide by its own end. kExhausted when all slots are taken.
  Result<SeqId> open(std::int32_t rope_length = 0);
  void close(SeqId sequence);
  std::int64_t length(SeqId sequence) const;
  // Takes back all behind the first `length` tokens. kUnsupported for a model with recurrent layers, whose state knows no way back.
  Status truncate(SeqId sequence, std::int64_t length);

  // Appends the pieces (each of another sequence) in one forward pass. The result has one row per wanted output, in the
  // order of the pieces, and is valid until the next step. kExhausted when the blocks do not suffice: nothing was appended.
  Result<kernels::Matrix> step(std::span<const Piece> pieces);

  // The same for one sequence in chunks of at most `chunk` tokens; the result holds the last piece's last row.
  Result<kernels::Matrix> prefill(SeqId sequence, std::span<const TokenId> tokens, std::int32_t chunk);

  model::Model& model() { return model_; }
  std::int64_t free_tokens() const;

 private:
  struct Sequence {
    kvcache::SequenceBlocks blocks;
    StateSlot state;
    std::int64_t length = 0;
    std::int32_t rope_length = 0;
  };
  Status reserve(std::span<const Piece> pieces);
  void append_rows(const Piece& piece);

  model::Model& model_;
  RunnerOptions options_;
  bool uses_blocks_;
  kvcache::BlockAllocator blocks_;
  kvcache::StateSlots slots_;
  model::SequenceMemory memory_;
  std::unordered_map<SeqId, Sequence> sequences_;
  std::int64_t next_id_ = 0;

  // One step's batch; kept between steps so that a steady state allocates nothing.
  std::vector<TokenId> tokens_;
  std::vector<kernels::SequenceSlice> slices_;
  std::vector<std::int32_t> output_rows_;
  std::vector<float> output_;
};

}  // namespace weir::engine
