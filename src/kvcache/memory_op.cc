// SPDX-License-Identifier: Apache-2.0
#include "kvcache/memory_op.h"

#include <utility>

#include "kvcache/disk_tier.h"

namespace weir::kvcache {

void apply(std::span<const MemoryOp> ops, PoolMemory& memory, DiskTier* tier) {
  for (const MemoryOp& op : ops) {
    switch (op.kind) {
      case MemoryOp::Kind::kCopy: memory.copy(op.pool, op.from, op.to, op.tokens); break;
      case MemoryOp::Kind::kClear: memory.clear(op.pool, op.to); break;
      case MemoryOp::Kind::kLoad: memory.write(op.pool, op.to, op.bytes); break;
      case MemoryOp::Kind::kSave: {
        if (tier == nullptr || tier->contains(op.pool, op.key)) break;
        std::vector<std::byte> bytes(tier->bytes(op.pool));
        memory.read(op.pool, op.from, bytes);
        tier->save(op.pool, op.key, std::move(bytes));
        break;
      }
    }
  }
}

}  // namespace weir::kvcache
