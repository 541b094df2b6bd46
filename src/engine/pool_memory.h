// SPDX-License-Identifier: Apache-2.0
// Between the books of the cache and the memory that they are about: the same pools for both from one description (cache_layout), and
// the books' operations carried out on the model's memory (PoolMemory).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kvcache/cache.h"
#include "kvcache/memory_op.h"
#include "model/sequence_memory.h"

namespace weir::engine {

struct CacheBudget {
  std::int64_t tokens = 0;       // positions kept at once, of all sequences and prefixes together; 0: as many as `bytes` hold
  std::uint64_t bytes = 0;       // not more than these; 0: as many as `tokens` need
  std::int32_t sequences = 1;    // that run at once
  std::int32_t step_rows = 512;  // most rows of one sequence in a step: windowed layers hold them beside their window
  std::int32_t block_tokens = 32;
  std::int32_t checkpoint_blocks = 8;  // kvcache::CacheOptions
  bool prefix_cache = true;
  bool snapshots = true;       // a second state for each running sequence, kept while guesses are verified
  bool phases_differ = false;  // kernels::Backend::phases_differ()
  DType kv_type = DType::kF32;
};

// What the books and the memory are made from: they cannot disagree.
struct CacheLayout {
  kvcache::CacheOptions cache;
  model::MemorySizes memory;
  std::int64_t tokens = 0;  // that the layers which see all hold, or all layers if all have windows
  std::uint64_t bytes = 0;
};

// Layers that see all get blocks for `tokens`. Windowed ones get what the running sequences see and write, and as much again for
// prefixes of which the end is kept; never more than those that see all. Recurrent layers get the states of running sequences and
// checkpoints for all tokens, as far as these are not larger than all keys and values. kInvalidArgument when the budget makes no sense,
// kExhausted when not even one block for each sequence fits.
Result<CacheLayout> cache_layout(const model::Traits& traits, const CacheBudget& budget);

// Pools in the order of the cache: the memory's groups, then its states.
class PoolMemory final : public kvcache::PoolMemory {
 public:
  explicit PoolMemory(model::SequenceMemory& memory) : memory_(memory) {}  // must outlive it

  void copy(std::int32_t pool, std::int32_t from, std::int32_t to, std::int32_t tokens) override;
  void clear(std::int32_t pool, std::int32_t id) override;
  void read(std::int32_t pool, std::int32_t id, std::span<std::byte> bytes) const override;
  void write(std::int32_t pool, std::int32_t id, std::span<const std::byte> bytes) override;

  std::uint64_t bytes_of(std::int32_t pool) const;  // of one block, or one state
  std::vector<std::uint64_t> pool_bytes() const;    // of all pools, as kvcache::DiskTierOptions wants them

 private:
  bool is_state(std::int32_t pool) const { return pool == memory_.groups(); }

  model::SequenceMemory& memory_;
};

}  // namespace weir::engine
