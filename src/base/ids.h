// SPDX-License-Identifier: Apache-2.0
// Strong types for identifiers, so that a block number cannot be passed where a sequence number is meant.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace weir {

template <class Tag, class Integer = std::int32_t>
struct Id {
  Integer value = -1;

  constexpr Id() = default;
  constexpr explicit Id(Integer v) : value(v) {}
  constexpr bool valid() const { return value >= 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using SeqId = Id<struct SeqTag, std::int64_t>;  // one generating sequence
using BlockId = Id<struct BlockTag>;            // one fixed-size block of KV cache
using StateSlot = Id<struct StateSlotTag>;      // one slot of recurrent state
using TokenId = std::int32_t;                   // an entry of the vocabulary; plain, since kernels index with it

}  // namespace weir

template <class Tag, class Integer>
struct std::hash<weir::Id<Tag, Integer>> {
  std::size_t operator()(weir::Id<Tag, Integer> id) const noexcept { return std::hash<Integer>{}(id.value); }
};
