// SPDX-License-Identifier: Apache-2.0
// One anonymous mapping for all KV blocks, block after block, and one for all state, layer after layer.
#include "model/sequence_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace weir::model {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHugePage = 2u << 20;
constexpr std::uint64_t kLine = 64;
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

// Of one token.
std::uint64_t key_bytes(const KvShape& s, DType type) { return static_cast<std::uint64_t>(s.heads * row_bytes(type, s.key_dim)); }
std::uint64_t value_bytes(const KvShape& s, DType type) {
  return s.values ? static_cast<std::uint64_t>(s.heads * row_bytes(type, s.value_dim)) : 0;
}

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// a · b, or "too much" instead of an overflow.
std::uint64_t product(std::uint64_t a, std::uint64_t b) { return b != 0 && a > kMostBytes / b ? kMostBytes : a * b; }

// Memory that is zero and costs nothing until touched; in steps of large pages if asked for and the system has them.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping() {
    if (mapped_ != nullptr) ::munmap(mapped_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  Status map(std::uint64_t bytes, bool huge, const char* what) {
    if (bytes == 0) return {};
    huge = huge && bytes >= kHugePage;
    const std::uint64_t size = huge ? rounded_up(bytes, kHugePage) + kHugePage : bytes;
    void* data = bytes >= kMostBytes ? MAP_FAILED
                                     : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      return fail(ErrorCode::kExhausted, "{} bytes for {} are more than this system gives: ask for a shorter context or fewer sequences",
                  bytes, what);
    }
    mapped_ = data_ = static_cast<std::byte*>(data);
    size_ = size;
    if (!huge) return {};
    data_ += (kHugePage - reinterpret_cast<std::uintptr_t>(data_) % kHugePage) % kHugePage;
    ::madvise(data_, size - kHugePage, MADV_HUGEPAGE);  // without them it is only slower
    return {};
  }
  std::byte* data() const { return data_; }

 private:
  std::byte *mapped_ = nullptr, *data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace

struct SequenceMemory::State {
  std::vector<kernels::KvLayer> kv;
  std::vector<kernels::StateLayer> states;
  std::int32_t blocks = 0, block_tokens = 0, state_slots = 0;
  std::uint64_t block_stride = 0;  // bytes from a block to the next
  Mapping kv_memory, state_memory;
  Status status;

  Status map(const Traits& traits, DType type);
  Status map_kv(const Traits& traits, DType type);
  Status map_states(const Traits& traits);
};

Status SequenceMemory::State::map_kv(const Traits& traits, DType type) {
  const auto tokens = static_cast<std::uint64_t>(block_tokens);
  for (const LayerTraits& layer : traits.layers) {
    const KvShape shape = kv_shape(traits, layer.mixer);
    block_stride +=
        rounded_up(product(tokens, key_bytes(shape, type)), kLine) + rounded_up(product(tokens, value_bytes(shape, type)), kLine);
  }
  // An odd number of pages: neighbouring blocks of a layer then fall on different sets of the caches.
  if (block_stride >= kPage) block_stride = (rounded_up(block_stride, kPage) / kPage | 1) * kPage;
  WEIR_TRY(kv_memory.map(product(static_cast<std::uint64_t>(blocks), block_stride), true, "the KV cache"));
  std::byte* next = kv_memory.data();
  for (const LayerTraits& layer : traits.layers) {
    const KvShape shape = kv_shape(traits, layer.mixer);
    kernels::KvLayer& l = kv.emplace_back();
    if (shape.heads == 0 || next == nullptr) continue;
    l = {type, next, nullptr, block_tokens, shape.heads, shape.key_dim, shape.value_dim, static_cast<std::int64_t>(block_stride)};
    next += rounded_up(tokens * key_bytes(shape, type), kLine);
    if (!shape.values) continue;
    l.values = next;
    next += rounded_up(tokens * value_bytes(shape, type), kLine);
  }
  return {};
}

Status SequenceMemory::State::map_states(const Traits& traits) {
  const auto slots = static_cast<std::uint64_t>(state_slots);
  std::uint64_t total = 0;
  for (const LayerTraits& layer : traits.layers) {
    total += rounded_up(product(slots, static_cast<std::uint64_t>(traits.state_floats(layer.mixer)) * sizeof(float)), kPage);
  }
  WEIR_TRY(state_memory.map(std::min(total, kMostBytes), false, "recurrent state"));
  std::byte* next = state_memory.data();
  for (const LayerTraits& layer : traits.layers) {
    kernels::StateLayer& l = states.emplace_back();
    const std::int64_t floats = traits.state_floats(layer.mixer);
    if (floats == 0 || slots == 0) continue;
    l = {reinterpret_cast<float*>(next), floats};
    next += rounded_up(slots * static_cast<std::uint64_t>(floats) * sizeof(float), kPage);
  }
  return {};
}

Status SequenceMemory::State::map(const Traits& traits, DType type) {
  if (blocks < 0 || block_tokens < 1 || state_slots < 0) {
    return fail(ErrorCode::kInvalidArgument, "sequence memory of {} blocks of {} tokens and {} state slots makes no sense", blocks,
                block_tokens, state_slots);
  }
  WEIR_TRY(check_type(traits, type));
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
  std::byte* data = state_->kv_memory.data();
  if (data == nullptr || state_->kv.empty()) return;
  const std::uint64_t bytes = state_->block_stride;
  std::memcpy(data + static_cast<std::uint64_t>(to.value) * bytes, data + static_cast<std::uint64_t>(from.value) * bytes, bytes);
}

Status SequenceMemory::check_type(const Traits& traits, DType kv_type) {
  if (kv_type == DType::kF32 || kv_type == DType::kF16 || kv_type == DType::kBF16) return {};
  if (kv_type != DType::kQ8_0)
    return fail(ErrorCode::kInvalidArgument, "the KV cache can be F32, F16, BF16 or Q8_0, not {}", dtype_name(kv_type));
  for (const LayerTraits& layer : traits.layers) {
    const KvShape shape = kv_shape(traits, layer.mixer);
    if (shape.key_dim % 32 != 0 || shape.value_dim % 32 != 0)
      return fail(ErrorCode::kInvalidArgument,
                  "a KV cache of Q8_0 needs heads that are multiples of 32, and this model's are {} and {}: use f16 or bf16", shape.key_dim,
                  shape.value_dim);
  }
  return {};
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
