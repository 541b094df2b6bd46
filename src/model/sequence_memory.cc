// SPDX-License-Identifier: Apache-2.0
// One anonymous mapping for all KV blocks and one for all state: layer after layer, each layer's part aligned to a page.
#include "model/sequence_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace weir::model {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMostBytes = 1ull << 46;

struct KvShape {
  std::int32_t heads = 0, key_dim = 0, value_dim = 0;
  bool values = false;  // stored apart from the keys
};

KvShape kv_shape(const Traits& traits, MixerKind mixer) {
  const AttentionTraits& a = traits.attention;
  const LatentTraits& m = traits.latent;
  if (mixer == MixerKind::kAttention) return {a.kv_heads, a.head_dim, a.value_dim, true};
  if (mixer == MixerKind::kLatentAttention) return {1, m.kv_rank + m.rope_dim, m.kv_rank, false};
  return {};
}

std::uint64_t key_bytes(const KvShape& s, DType type) {
  return static_cast<std::uint64_t>(row_bytes(type, std::int64_t{s.heads} * s.key_dim));
}
std::uint64_t value_bytes(const KvShape& s, DType type) {
  return s.values ? static_cast<std::uint64_t>(row_bytes(type, std::int64_t{s.heads} * s.value_dim)) : 0;
}

std::uint64_t pages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// a · b, or "too much" instead of an overflow.
std::uint64_t product(std::uint64_t a, std::uint64_t b) { return b != 0 && a > kMostBytes / b ? kMostBytes : a * b; }

// Memory that is zero and costs nothing until touched.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  Status map(std::uint64_t bytes, const char* what) {
    if (bytes == 0) return {};
    void* data = bytes >= kMostBytes ? MAP_FAILED
                                     : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      return fail(ErrorCode::kExhausted, "{} bytes for {} are more than this system gives: ask for a shorter context or fewer sequences",
                  bytes, what);
    }
    data_ = static_cast<std::byte*>(data);
    size_ = bytes;
    return {};
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace

struct SequenceMemory::State {
  std::vector<kernels::KvLayer> kv;
  std::vector<kernels::StateLayer> states;
  std::int32_t blocks = 0, block_tokens = 0, state_slots = 0;
  Mapping kv_memory, state_memory;
  Status status;

  std::uint64_t key_block_bytes(const kernels::KvLayer& l) const {
    return static_cast<std::uint64_t>(row_bytes(l.type, std::int64_t{l.kv_heads} * l.key_dim * block_tokens));
  }
  std::uint64_t value_block_bytes(const kernels::KvLayer& l) const {
    return static_cast<std::uint64_t>(row_bytes(l.type, std::int64_t{l.kv_heads} * l.value_dim * block_tokens));
  }
  Status map(const Traits& traits, DType type);
  Status map_kv(const Traits& traits, DType type);
  Status map_states(const Traits& traits);
};

Status SequenceMemory::State::map_kv(const Traits& traits, DType type) {
  const std::uint64_t tokens = product(static_cast<std::uint64_t>(blocks), static_cast<std::uint64_t>(block_tokens));
  std::uint64_t total = 0;
  for (const LayerTraits& layer : traits.layers) {
    const KvShape shape = kv_shape(traits, layer.mixer);
    total += pages(product(tokens, key_bytes(shape, type))) + pages(product(tokens, value_bytes(shape, type)));
  }
  WEIR_TRY(kv_memory.map(std::min(total, kMostBytes), "the KV cache"));
  std::byte* next = kv_memory.data();
  for (const LayerTraits& layer : traits.layers) {
    const KvShape shape = kv_shape(traits, layer.mixer);
    kernels::KvLayer& l = kv.emplace_back();
    if (shape.heads == 0) continue;
    l = {type, next, nullptr, block_tokens, shape.heads, shape.key_dim, shape.value_dim};
    next += pages(tokens * key_bytes(shape, type));
    if (!shape.values) continue;
    l.values = next;
    next += pages(tokens * value_bytes(shape, type));
  }
  return {};
}

Status SequenceMemory::State::map_states(const Traits& traits) {
  const auto slots = static_cast<std::uint64_t>(state_slots);
  std::uint64_t total = 0;
  for (const LayerTraits& layer : traits.layers) {
    total += pages(product(slots, static_cast<std::uint64_t>(traits.state_floats(layer.mixer)) * sizeof(float)));
  }
  WEIR_TRY(state_memory.map(std::min(total, kMostBytes), "recurrent state"));
  std::byte* next = state_memory.data();
  for (const LayerTraits& layer : traits.layers) {
    kernels::StateLayer& l = states.emplace_back();
    const std::int64_t floats = traits.state_floats(layer.mixer);
    if (floats == 0 || slots == 0) continue;
    l = {reinterpret_cast<float*>(next), floats};
    next += pages(slots * static_cast<std::uint64_t>(floats) * sizeof(float));
  }
  return {};
}

Status SequenceMemory::State::map(const Traits& traits, DType type) {
  if (blocks < 0 || block_tokens < 1 || state_slots < 0) {
    return fail(ErrorCode::kInvalidArgument, "sequence memory of {} blocks of {} tokens and {} state slots makes no sense", blocks,
                block_tokens, state_slots);
  }
  if (type != DType::kF32 && type != DType::kF16 && type != DType::kBF16) {
    return fail(ErrorCode::kInvalidArgument, "the KV cache can be F32, F16 or BF16, not {}", dtype_name(type));
  }
  WEIR_TRY(map_kv(traits, type));
  return map_states(traits);
}

SequenceMemory::SequenceMemory(const Traits& traits, std::int32_t blocks, std::int32_t block_tokens, std::int32_t state_slots,
                               DType kv_type)
    : state_(std::make_unique<State>()) {
  state_->blocks = blocks;
  state_->block_tokens = block_tokens;
  state_->state_slots = state_slots;
  state_->status = state_->map(traits, kv_type);
  if (state_->status.has_value()) return;
  state_->kv.clear();  // copying and clearing then find nothing to do
  state_->states.clear();
}

SequenceMemory::~SequenceMemory() = default;

const Status& SequenceMemory::status() const { return state_->status; }
const kernels::KvLayer& SequenceMemory::kv(std::int32_t layer) const { return state_->kv[static_cast<std::size_t>(layer)]; }
const kernels::StateLayer& SequenceMemory::state(std::int32_t layer) const { return state_->states[static_cast<std::size_t>(layer)]; }
std::int32_t SequenceMemory::block_tokens() const { return state_->block_tokens; }
std::int32_t SequenceMemory::blocks() const { return state_->blocks; }
std::int32_t SequenceMemory::state_slots() const { return state_->state_slots; }

void SequenceMemory::clear_state(StateSlot slot) {
  WEIR_CHECK(slot.valid() && slot.value < state_->state_slots, "state slot {} of {}", slot.value, state_->state_slots);
  for (const kernels::StateLayer& l : state_->states) {
    if (l.data != nullptr) std::fill_n(l.slot(slot), l.floats_per_slot, 0.0f);
  }
}

void SequenceMemory::copy_state(StateSlot from, StateSlot to) {
  for (StateSlot slot : {from, to}) {
    WEIR_CHECK(slot.valid() && slot.value < state_->state_slots, "state slot {} of {}", slot.value, state_->state_slots);
  }
  for (const kernels::StateLayer& l : state_->states) {
    if (l.data != nullptr && from != to) std::copy_n(l.slot(from), l.floats_per_slot, l.slot(to));
  }
}

void SequenceMemory::copy_block(BlockId from, BlockId to) {
  for (BlockId block : {from, to}) {
    WEIR_CHECK(block.valid() && block.value < state_->blocks, "block {} of {}", block.value, state_->blocks);
  }
  if (from == to) return;
  const auto copy = [&](std::byte* data, std::uint64_t bytes) {
    std::memcpy(data + static_cast<std::uint64_t>(to.value) * bytes, data + static_cast<std::uint64_t>(from.value) * bytes, bytes);
  };
  for (const kernels::KvLayer& l : state_->kv) {
    if (l.keys != nullptr) copy(l.keys, state_->key_block_bytes(l));
    if (l.values != nullptr) copy(l.values, state_->value_block_bytes(l));
  }
}

std::uint64_t SequenceMemory::bytes_per_token(const Traits& traits, DType kv_type) {
  std::uint64_t bytes = 0;
  for (const LayerTraits& layer : traits.layers) {
    const KvShape shape = kv_shape(traits, layer.mixer);
    bytes += key_bytes(shape, kv_type) + value_bytes(shape, kv_type);
  }
  return bytes;
}

std::uint64_t SequenceMemory::bytes_per_state(const Traits& traits) {
  std::uint64_t bytes = 0;
  for (const LayerTraits& layer : traits.layers) bytes += static_cast<std::uint64_t>(traits.state_floats(layer.mixer)) * sizeof(float);
  return bytes;
}

}  // namespace weir::model
