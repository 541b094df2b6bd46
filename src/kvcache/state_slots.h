// SPDX-License-Identifier: Apache-2.0
// Hands out the slots of recurrent state: a hybrid model keeps one slot per sequence beside its KV blocks. A slot changes with
// every token, so a fork copies it into a slot of its own; references above one are for snapshots, which nobody writes.
#pragma once

#include "base/ids.h"
#include "kvcache/counted_pool.h"

namespace weir::kvcache {

class StateSlots : public CountedPool<StateSlot> {
 public:
  explicit StateSlots(std::int32_t slots) : CountedPool(slots, "recurrent state slots") {}
};

}  // namespace weir::kvcache
