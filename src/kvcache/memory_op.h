// SPDX-License-Identifier: Apache-2.0
// What bookkeeping asks of the memory it keeps the books of: copies, cleared states, blocks to and from the second tier. A step's
// list is carried out in order, before the step's rows run: a block may be saved, copied from and written again within one list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace weir::kvcache {

class DiskTier;

// Pools are numbered: the groups of layers with KV blocks first, in the order of CacheOptions::groups, then the state slots.
struct MemoryOp {
  enum class Kind {
    kCopy,   // `from` → `to`, of a KV block the first `tokens` positions
    kClear,  // state slot `to` = the state before a first token
    kSave,   // `from` → second tier, as `key`
    kLoad,   // `bytes` → `to`
  };
  Kind kind = Kind::kCopy;
  std::int32_t pool = 0;
  std::int32_t from = -1, to = -1;  // BlockId or StateSlot, by pool
  std::int32_t tokens = 0;
  std::string key;
  std::vector<std::byte> bytes;
};

// The memory, given by the engine (a simulator has none).
class PoolMemory {
 public:
  virtual ~PoolMemory() = default;
  virtual void copy(std::int32_t pool, std::int32_t from, std::int32_t to, std::int32_t tokens) = 0;
  virtual void clear(std::int32_t pool, std::int32_t id) = 0;
  virtual void read(std::int32_t pool, std::int32_t id,
                    std::span<std::byte> bytes) const = 0;  // a whole block or state, as load gives it back
  virtual void write(std::int32_t pool, std::int32_t id, std::span<const std::byte> bytes) = 0;
};

// Carries out the list. `tier` may be null when there is none.
void apply(std::span<const MemoryOp> ops, PoolMemory& memory, DiskTier* tier);

}  // namespace weir::kvcache
