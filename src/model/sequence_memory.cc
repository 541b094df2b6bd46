// SPDX-License-Identifier: Apache-2.0
// One anonymous mapping for the KV blocks of each group, block after block, and one for all state, layer after layer.
#include "model/sequence_memory.h"

#include <sys/mman.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/huge_memory.h"
#include "model/pages_ahead.h"

namespace weir::model {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kMostBytes = 1ull << 46;
constexpr std::uint64_t kAheadBytes = 16u << 20;  // of all groups' pages: a few prompts
constexpr std::uint64_t kTileTokens = 16;         // positions that may lie interleaved in a block (kernels::KvLayer)

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

// All layers as one: of a model without attention, none.
KvGroup one_group(const std::vector<KvGroup>& groups) {
  KvGroup all;
  bool sees_all = false;
  for (const KvGroup& group : groups) {
    all.layers.insert(all.layers.end(), group.layers.begin(), group.layers.end());
    all.window = std::max(all.window, group.window);
    sees_all = sees_all || group.window == 0;
  }
  if (sees_all) all.window = 0;
  std::ranges::sort(all.layers);
  return all;
}

}  // namespace

struct SequenceMemory::State {
  struct Group {
    KvGroup layers;
    std::int32_t blocks = 0;
    std::uint64_t stride = 0;  // bytes from a block to the next
    Mapping memory;
    PagesAhead ahead;

    std::byte* block(BlockId id) const { return memory.data() + static_cast<std::uint64_t>(id.value) * stride; }
  };

  std::deque<Group> groups;
  std::vector<std::int32_t> group_of;  // each layer
  std::vector<kernels::KvLayer> kv;
  std::vector<kernels::StateLayer> states;
  MemorySizes sizes;
  Mapping state_memory;
  Status status;

  void make_groups(const Traits& traits);
  Status map(const Traits& traits);
  Status map_group(const Traits& traits, Group& group);
  Status map_states(const Traits& traits);
  const Group& checked(std::int32_t group, BlockId block) const;
  void check(StateSlot slot) const;
};

// Sizes that are no sizes make groups too: whoever asks for them finds blocks that no id fits.
void SequenceMemory::State::make_groups(const Traits& traits) {
  std::vector<KvGroup> all = kv_groups(traits);
  if (sizes.blocks.size() == 1) all = {one_group(all)};
  for (std::size_t g = 0; g < all.size(); ++g) {
    Group& group = groups.emplace_back();
    group.layers = std::move(all[g]);
    group.blocks = g < sizes.blocks.size() ? sizes.blocks[g] : 0;
    for (const std::int32_t layer : group.layers.layers) group_of[static_cast<std::size_t>(layer)] = static_cast<std::int32_t>(g);
  }
}

Status SequenceMemory::State::map_group(const Traits& traits, Group& group) {
  const auto tokens = static_cast<std::uint64_t>(sizes.block_tokens);
  group.stride = bytes_per_block(traits, group.layers, sizes.block_tokens, sizes.kv_type);
  WEIR_TRY(group.memory.map(product(static_cast<std::uint64_t>(group.blocks), group.stride), true, "the KV cache"));
  std::byte* next = group.memory.data();
  if (next == nullptr) return {};
  group.ahead = PagesAhead(next, static_cast<std::uint64_t>(group.blocks) * group.stride, kAheadBytes / groups.size());
  for (const std::int32_t index : group.layers.layers) {
    const auto layer = static_cast<std::size_t>(index);
    const KvShape shape = kv_shape(traits, traits.layers[layer].mixer);
    kernels::KvLayer& l = kv[layer];
    l = {sizes.kv_type, next,          nullptr,         sizes.block_tokens,
         shape.heads,   shape.key_dim, shape.value_dim, static_cast<std::int64_t>(group.stride)};
    next += rounded_up(tokens * key_bytes(shape, sizes.kv_type), kLine);
    if (!shape.values) continue;
    l.values = next;
    next += rounded_up(tokens * value_bytes(shape, sizes.kv_type), kLine);
  }
  return {};
}

Status SequenceMemory::State::map_states(const Traits& traits) {
  const auto slots = static_cast<std::uint64_t>(sizes.state_slots);
  std::uint64_t total = 0;
  for (const LayerTraits& layer : traits.layers) {
    total += rounded_up(product(slots, static_cast<std::uint64_t>(traits.state_floats(layer.mixer)) * sizeof(float)), kPage);
  }
  WEIR_TRY(state_memory.map(std::min(total, kMostBytes), false, "recurrent state"));
  std::byte* next = state_memory.data();
  for (std::size_t layer = 0; layer < states.size(); ++layer) {
    const std::int64_t floats = traits.state_floats(traits.layers[layer].mixer);
    if (floats == 0 || slots == 0) continue;
    states[layer] = {reinterpret_cast<float*>(next), floats};
    next += rounded_up(slots * static_cast<std::uint64_t>(floats) * sizeof(float), kPage);
  }
  return {};
}

Status SequenceMemory::State::map(const Traits& traits) {
  const std::size_t given = sizes.blocks.size();
  if (given != 1 && given != groups.size())
    return fail(ErrorCode::kInvalidArgument, "numbers of blocks for {} groups of layers, and the model has {}", given, groups.size());
  for (const Group& group : groups) {
    if (group.blocks < 0 || sizes.block_tokens < 1 || sizes.state_slots < 0)
      return fail(ErrorCode::kInvalidArgument, "sequence memory of {} blocks of {} tokens and {} state slots makes no sense", group.blocks,
                  sizes.block_tokens, sizes.state_slots);
  }
  if (sizes.state_slots < 0) return fail(ErrorCode::kInvalidArgument, "{} state slots make no sense", sizes.state_slots);
  WEIR_TRY(check_type(traits, sizes.kv_type));
  for (Group& group : groups) WEIR_TRY(map_group(traits, group));
  return map_states(traits);
}

const SequenceMemory::State::Group& SequenceMemory::State::checked(std::int32_t group, BlockId block) const {
  WEIR_CHECK(group >= 0 && group < static_cast<std::int32_t>(groups.size()), "group {} of {}", group, groups.size());
  const Group& g = groups[static_cast<std::size_t>(group)];
  WEIR_CHECK(block.valid() && block.value < g.blocks, "block {} of {}", block.value, g.blocks);
  return g;
}

void SequenceMemory::State::check(StateSlot slot) const {
  WEIR_CHECK(slot.valid() && slot.value < sizes.state_slots, "state slot {} of {}", slot.value, sizes.state_slots);
}

SequenceMemory::SequenceMemory(const Traits& traits, const MemorySizes& sizes) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.sizes = sizes;
  s.group_of.resize(traits.layers.size(), 0);
  s.kv.resize(traits.layers.size());
  s.states.resize(traits.layers.size());
  s.make_groups(traits);
  s.status = s.map(traits);
  if (s.status.has_value()) return;
  std::ranges::fill(s.kv, kernels::KvLayer());  // copying and clearing then find nothing to do
  std::ranges::fill(s.states, kernels::StateLayer());
}

SequenceMemory::~SequenceMemory() = default;

const Status& SequenceMemory::status() const { return state_->status; }
const kernels::KvLayer& SequenceMemory::kv(std::int32_t layer) const { return state_->kv[static_cast<std::size_t>(layer)]; }
const kernels::StateLayer& SequenceMemory::state(std::int32_t layer) const { return state_->states[static_cast<std::size_t>(layer)]; }
std::int32_t SequenceMemory::groups() const { return static_cast<std::int32_t>(state_->groups.size()); }
std::int32_t SequenceMemory::group_of(std::int32_t layer) const { return state_->group_of[static_cast<std::size_t>(layer)]; }
std::int32_t SequenceMemory::window(std::int32_t group) const { return state_->groups[static_cast<std::size_t>(group)].layers.window; }
std::int32_t SequenceMemory::blocks(std::int32_t group) const {
  return group < groups() ? state_->groups[static_cast<std::size_t>(group)].blocks : 0;
}
std::int32_t SequenceMemory::block_tokens() const { return state_->sizes.block_tokens; }
std::int32_t SequenceMemory::state_slots() const { return state_->sizes.state_slots; }

void SequenceMemory::note_use(std::int32_t group, BlockId block) {
  State::Group& g = state_->groups[static_cast<std::size_t>(group)];
  if (block.valid()) g.ahead.used_up_to((static_cast<std::uint64_t>(block.value) + 1) * g.stride);
}

bool SequenceMemory::touch_ahead() {
  return std::ranges::any_of(state_->groups, [](State::Group& group) { return group.ahead.touch(); });
}

std::uint64_t SequenceMemory::bytes() const {
  if (!state_->status) return 0;
  std::uint64_t bytes = state_bytes() * static_cast<std::uint64_t>(state_->sizes.state_slots);
  for (const State::Group& group : state_->groups) bytes += group.stride * static_cast<std::uint64_t>(group.blocks);
  return bytes;
}

void SequenceMemory::clear_state(StateSlot slot) {
  state_->check(slot);
  for (const kernels::StateLayer& l : state_->states) {
    if (l.data != nullptr) std::fill_n(l.slot(slot), l.floats_per_slot, 0.0f);
  }
}

void SequenceMemory::copy_state(StateSlot from, StateSlot to) {
  state_->check(from);
  state_->check(to);
  for (const kernels::StateLayer& l : state_->states) {
    if (l.data != nullptr && from != to) std::copy_n(l.slot(from), l.floats_per_slot, l.slot(to));
  }
}

void SequenceMemory::copy_block(std::int32_t group, BlockId from, BlockId to, std::int32_t tokens) {
  const State::Group& g = state_->checked(group, from);
  state_->checked(group, to);
  if (from == to || tokens < 1) return;
  const auto whole_tiles = static_cast<std::int64_t>(rounded_up(static_cast<std::uint64_t>(tokens), kTileTokens));
  const std::int64_t copied = std::min<std::int64_t>(whole_tiles, state_->sizes.block_tokens);
  const auto copy_heads = [&](std::byte* first, const kernels::KvLayer& l, std::int32_t dim) {
    const std::int64_t row = row_bytes(l.type, dim), head = l.block_tokens * row;
    for (std::int32_t h = 0; h < l.kv_heads; ++h) {
      const std::byte* source = first + from.value * l.block_stride + h * head;
      std::memcpy(first + to.value * l.block_stride + h * head, source, static_cast<std::size_t>(copied * row));
    }
  };
  for (const std::int32_t layer : g.layers.layers) {
    const kernels::KvLayer& l = kv(layer);
    if (l.keys != nullptr) copy_heads(l.keys, l, l.key_dim);
    if (l.values != nullptr) copy_heads(l.values, l, l.value_dim);
  }
}

std::uint64_t SequenceMemory::block_bytes(std::int32_t group) const { return state_->groups[static_cast<std::size_t>(group)].stride; }

std::uint64_t SequenceMemory::state_bytes() const {
  std::uint64_t bytes = 0;
  for (const kernels::StateLayer& l : state_->states) bytes += static_cast<std::uint64_t>(l.floats_per_slot) * sizeof(float);
  return bytes;
}

void SequenceMemory::read_block(std::int32_t group, BlockId block, std::span<std::byte> out) const {
  const State::Group& g = state_->checked(group, block);
  WEIR_CHECK(state_->status.has_value() && out.size() == g.stride, "{} bytes for a block of {}", out.size(), g.stride);
  if (!out.empty()) std::memcpy(out.data(), g.block(block), out.size());
}

void SequenceMemory::write_block(std::int32_t group, BlockId block, std::span<const std::byte> bytes) {
  const State::Group& g = state_->checked(group, block);
  WEIR_CHECK(state_->status.has_value() && bytes.size() == g.stride, "{} bytes for a block of {}", bytes.size(), g.stride);
  if (!bytes.empty()) std::memcpy(g.block(block), bytes.data(), bytes.size());
}

void SequenceMemory::read_state(StateSlot slot, std::span<std::byte> out) const {
  state_->check(slot);
  WEIR_CHECK(out.size() == state_bytes(), "{} bytes for a state of {}", out.size(), state_bytes());
  std::size_t at = 0;
  for (const kernels::StateLayer& l : state_->states) {
    const auto size = static_cast<std::size_t>(l.floats_per_slot) * sizeof(float);
    if (size > 0) std::memcpy(out.data() + at, l.slot(slot), size);
    at += size;
  }
}

void SequenceMemory::write_state(StateSlot slot, std::span<const std::byte> bytes) {
  state_->check(slot);
  WEIR_CHECK(bytes.size() == state_bytes(), "{} bytes for a state of {}", bytes.size(), state_bytes());
  std::size_t at = 0;
  for (const kernels::StateLayer& l : state_->states) {
    const auto size = static_cast<std::size_t>(l.floats_per_slot) * sizeof(float);
    if (size > 0) std::memcpy(l.slot(slot), bytes.data() + at, size);
    at += size;
  }
}

// Sizes alone do not tell an order: kTileTokens and the version do.
std::string SequenceMemory::layout() const {
  std::string text = fmt::format("kv1 {} {}/{}", dtype_name(state_->sizes.kv_type), state_->sizes.block_tokens, kTileTokens);
  for (const State::Group& group : state_->groups) text += fmt::format(" {}:{}", group.layers.window, group.stride);
  return text + fmt::format(" state {}", state_bytes());
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

// An odd number of pages: neighbouring blocks of a layer then fall on different sets of the caches.
std::uint64_t SequenceMemory::bytes_per_block(const Traits& traits, const KvGroup& group, std::int32_t block_tokens, DType kv_type) {
  const auto tokens = static_cast<std::uint64_t>(block_tokens);
  std::uint64_t bytes = 0;
  for (const std::int32_t layer : group.layers) {
    const KvShape shape = kv_shape(traits, traits.layers[static_cast<std::size_t>(layer)].mixer);
    bytes +=
        rounded_up(product(tokens, key_bytes(shape, kv_type)), kLine) + rounded_up(product(tokens, value_bytes(shape, kv_type)), kLine);
  }
  return bytes < kPage ? bytes : (rounded_up(bytes, kPage) / kPage | 1) * kPage;
}

std::vector<KvGroup> kv_groups(const Traits& traits) {
  std::map<std::int32_t, KvGroup> by_window;
  KvGroup seeing_all;
  for (std::size_t i = 0; i < traits.layers.size(); ++i) {
    if (kv_shape(traits, traits.layers[i].mixer).heads == 0) continue;
    const std::int32_t window = traits.attention.causal ? traits.layers[i].window : 0;
    const bool apart = window > 0 && (by_window.contains(window) || by_window.size() + 1 < kMostKvGroups);
    KvGroup& group = apart ? by_window[window] : seeing_all;
    group.window = apart ? window : 0;
    group.layers.push_back(static_cast<std::int32_t>(i));
  }
  std::vector<KvGroup> groups;
  if (!seeing_all.layers.empty()) groups.push_back(std::move(seeing_all));
  for (auto& [window, group] : by_window) groups.push_back(std::move(group));
  return groups;
}

}  // namespace weir::model
