// SPDX-License-Identifier: Apache-2.0
#include "model/weight_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <system_error>
#include <thread>

#include "base/cache_file.h"
#include "base/cache_folder.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file_digest.h"
#include "base/huge_memory.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/numa.h"
#include "base/page_mover.h"
#include "base/sha256.h"
#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "model/scratch.h"

namespace weir::model {
namespace {

constexpr std::uint64_t kAlignment = 4096;         // of a weight in the cache, so that its pages can be given back
constexpr std::int64_t kSliceBytes = 8 << 20;      // of a weight that is packed at a time
constexpr std::uint64_t kReleaseAfter = 64 << 20;  // of deferred bytes
constexpr int kCopyThreads = 16;                   // more gain nothing: memory is the limit

// Calls f for the matrix of every linear layer.
template <class F>
void for_each_matrix(Weights& weights, F f) {
  const auto linear = [&](auto&... layers) { ((layers.weight ? f(*layers.weight) : void()), ...); };
  const auto ffn = [&](FfnWeights& w) { linear(w.gate, w.up, w.gate_up, w.down); };
  linear(weights.head, weights.pooler, weights.classifier.dense, weights.classifier.out);
  for (LayerWeights& layer : weights.layers) {
    linear(layer.attention.q, layer.attention.k, layer.attention.v, layer.attention.qkv, layer.attention.o);
    linear(layer.latent.q, layer.latent.q_down, layer.latent.q_up, layer.latent.kv_down, layer.latent.o);
    for (kernels::Weight& w : layer.latent.key_up) f(w);
    for (kernels::Weight& w : layer.latent.value_up) f(w);
    linear(layer.recurrent.in, layer.recurrent.qkv, layer.recurrent.z, layer.recurrent.alpha, layer.recurrent.beta, layer.recurrent.out);
    ffn(layer.ffn);
    linear(layer.experts.router, layer.experts.shared_gate);
    ffn(layer.experts.shared);
    for (FfnWeights& expert : layer.experts.experts) ffn(expert);
  }
}

// A weight and its place in the cache.
struct Place {
  kernels::Weight* weight;
  std::uint64_t offset, bytes;
};

struct Plan {
  std::vector<Place> places;  // one for each distinct matrix
  std::vector<Place> shared;  // others that show the same bytes
  std::uint64_t total = 0;
};

Plan make_plan(Weights& weights, const kernels::Backend& backend) {
  Plan plan;
  std::map<std::pair<const std::byte*, std::size_t>, std::uint64_t> known;
  for_each_matrix(weights, [&](kernels::Weight& w) {
    const auto bytes = static_cast<std::uint64_t>(backend.packed_bytes(w));
    if (bytes == 0) return;
    const auto [at, fresh] = known.try_emplace({w.view.bytes.data(), w.view.bytes.size()}, plan.total);
    (fresh ? plan.places : plan.shared).push_back({&w, at->second, bytes});
    if (fresh) plan.total += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  });
  return plan;
}

const MappedFile* file_of(const Weights& weights, const kernels::Weight& w, std::uint64_t& offset) {
  for (const auto& file : weights.files) {
    const auto all = file->bytes();
    if (w.view.bytes.data() < all.data() || w.view.bytes.data() >= all.data() + all.size()) continue;
    offset = static_cast<std::uint64_t>(w.view.bytes.data() - all.data());
    return file.get();
  }
  return nullptr;
}

// What the files hold, not where they lie: a copy or a renamed file finds what was packed before.
Result<std::string> key_of(const Weights& weights, const Plan& plan, const std::string& layout, const DigestIndex& index,
                           ThreadPool& pool) {
  std::string key = layout + "\n";
  for (const auto& file : weights.files) {
    WEIR_ASSIGN(const std::string digest, remembered_digest(*file, index, pool));
    key += digest + "\n";
  }
  std::string weights_text;
  for (const Place& place : plan.places) {
    std::uint64_t offset = 0;
    file_of(weights, *place.weight, offset);
    const TensorView& view = place.weight->view;
    weights_text += fmt::format("{} {} {} {}\n", dtype_name(view.type), shape_string(view.shape), offset, place.offset);
  }
  return key + fmt::format("{} weights {}\n", plan.places.size(), sha256_of(weights_text));
}

// Pages of a file's mapping are given back once written.
enum class Target { kMemory, kMappedFile };

// Consecutive outputs of a weight, as a weight (see Backend::pack).
kernels::Weight slice_of(const kernels::Weight& weight, std::int64_t begin, std::int64_t count) {
  kernels::Weight slice = weight;
  slice.view = weight.view.row_slice(begin, count);
  return slice;
}

using DeferredByStart = std::map<const std::byte*, const DeferredBytes*>;

DeferredByStart deferred_by_start(const Weights& weights) {
  DeferredByStart found;
  for (const DeferredBytes& deferred : weights.deferred) found.emplace(deferred.bytes.data(), &deferred);
  return found;
}

// Packs the weights of a plan one after the other.
class Packer {
 public:
  Packer(const Weights& weights, kernels::Backend& backend, ThreadPool& pool, Target target)
      : weights_(weights), backend_(backend), pool_(pool), target_(target), deferred_(deferred_by_start(weights)) {}

  // A slice at a time, so that little of the model file is resident beside what was made of it.
  void pack(const Place& place, std::span<std::byte> out) {
    const kernels::Weight& weight = *place.weight;
    const std::int64_t rows = weight.view.rows();
    const bool whole = weight.layout != kernels::WeightLayout::kOutIn;
    const std::int64_t step =
        whole ? rows : std::max<std::int64_t>(kSliceBytes / weight.view.bytes_per_row() / kernels::kPackRows, 1) * kernels::kPackRows;
    const auto deferred = deferred_.find(weight.view.bytes.data());
    std::uint64_t at = 0;
    for (std::int64_t begin = 0; begin < rows; begin += step) {
      const kernels::Weight slice = slice_of(weight, begin, std::min(step, rows - begin));
      if (deferred != deferred_.end()) make(*deferred->second, begin, slice.view);
      const auto part = out.subspan(at, static_cast<std::uint64_t>(backend_.packed_bytes(slice)));
      backend_.pack(slice, part);
      if (target_ == Target::kMappedFile) give_back(part);
      release(slice);
      at += part.size();
    }
    WEIR_CHECK(at == out.size(), "{} bytes packed of {}", at, out.size());
    if (deferred != deferred_.end()) finish(*deferred->second);
  }

 private:
  void make(const DeferredBytes& deferred, std::int64_t begin, const TensorView& view) const {
    constexpr std::int64_t kRows = 16;
    std::byte* const to = deferred.bytes.data() + begin * view.bytes_per_row();
    pool_.parallel_for(view.rows(), kRows, [&](std::int64_t first, std::int64_t last) {
      deferred.make(begin + first, last - first, to + first * view.bytes_per_row());
    });
  }

  // What was made, and now and then all of the files that it was made of.
  void finish(const DeferredBytes& deferred) {
    give_back(deferred.bytes);
    made_ += deferred.bytes.size();
    if (made_ < kReleaseAfter) return;
    for (const auto& file : weights_.files) file->release(0, file->bytes().size());
    made_ = 0;
  }

  void release(const kernels::Weight& weight) const {
    std::uint64_t offset = 0;
    if (const MappedFile* file = file_of(weights_, weight, offset)) file->release(offset, weight.view.bytes.size());
  }

  // Whole pages within these bytes.
  static void give_back(std::span<std::byte> bytes) {
    constexpr std::uintptr_t kPage = 4096;
    const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + kPage - 1) / kPage * kPage;
    const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / kPage * kPage;
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }

  const Weights& weights_;
  kernels::Backend& backend_;
  ThreadPool& pool_;
  const Target target_;
  const DeferredByStart deferred_;
  std::uint64_t made_ = 0;
};

// kCorrupt when a file was changed while it was read: what was made of it must not be kept.
Status pack_all(const Plan& plan, const Weights& weights, kernels::Backend& backend, ThreadPool& pool, Target target,
                std::span<std::byte> out) {
  Packer packer(weights, backend, pool, target);
  for (const Place& place : plan.places) packer.pack(place, out.subspan(place.offset, place.bytes));
  for (const auto& file : weights.files)
    if (!file->unchanged()) return fail(ErrorCode::kCorrupt, "{} was changed while it was packed", file->path().string());
  return {};
}

// Whether to take private memory with large pages: when this machine has them, and room to spare.
bool wants_large_pages(const Plan& plan, const WeightCacheOptions& options) {
  constexpr std::uint64_t kSpare = 256 << 20;
  if (options.huge_pages != HugePages::kAuto) return options.huge_pages == HugePages::kOn;
  return huge_pages_allowed() && available_memory().value_or(UINT64_MAX) >= plan.total + kSpare;
}

std::vector<int> nodes_for(const WeightCacheOptions& options) { return options.interleave ? read_memory_nodes() : std::vector<int>(); }

// Where this model's packed weights are kept between starts.
struct Cache {
  CacheFile::Options options;
  std::string key;
};

std::optional<Cache> find_cache(const Weights& weights, const Plan& plan, const std::string& layout, const WeightCacheOptions& options,
                                ThreadPool& pool, WeightCacheReport& report) {
  if (!options.enabled) return std::nullopt;
  const auto folder = options.folder.empty() ? cache_folder("weights") : options.folder;
  if (folder.empty()) {
    report.note = "the weight cache is off: there is no home folder";
    return std::nullopt;
  }
  auto key = key_of(weights, plan, layout, DigestIndex(folder / "digests"), pool);
  if (key) return Cache{{.folder = folder, .limit_bytes = options.limit_bytes}, std::move(*key)};
  report.note = fmt::format("the weight cache is off: {}", key.error().message);
  return std::nullopt;
}

// Packed weights, wherever they lie; no owner: nowhere.
struct Packed {
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner = {};
  std::unique_ptr<PageMover> mover = {};  // when they are mapped, and are to be moved to large pages
};

// Writes packed weights to the cache while the model is used already: a disk may be slower than packing. Ends with the model.
class Keeper {
 public:
  Keeper(Cache cache, HugeMemory memory) : cache_(std::move(cache)), memory_(std::move(memory)) {
    if (!start()) write();
  }
  ~Keeper() {
    if (thread_.joinable()) thread_.join();
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

 private:
  bool start() try {
    thread_ = std::thread([this] { write(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }

  void write() {
    ThreadPool alone(1);
    const Status kept = CacheFile::store(cache_.options, cache_.key, memory_.bytes, alone);
    if (!kept) log::warn("packed weights are not kept, each start packs anew: {}", kept.error().message);
  }

  const Cache cache_;
  const HugeMemory memory_;
  std::thread thread_;
};

Packed pack_into_memory(const HugeMemory& memory, const std::optional<Cache>& cache, const CacheFile::Fill& pack,
                        WeightCacheReport& report) {
  const Status packed = pack(memory.bytes);
  report.made = true;
  if (!packed) report.note = packed.error().message;
  if (!packed || !cache) return {memory.bytes.data(), memory.owner};
  return {memory.bytes.data(), std::make_shared<Keeper>(*cache, memory)};
}

Packed pack_into_file(const Cache& cache, std::uint64_t bytes, const CacheFile::Fill& pack, ThreadPool& pool, WeightCacheReport& report) {
  const auto made = CacheFile::create(cache.options, cache.key, bytes, pack, pool);
  report.made = made.has_value();
  if (made) return {made->data().data(), made->owner()};
  report.note = fmt::format("the weight cache is off: {}", made.error().message);
  return {};
}

// What the cache has: copied when private memory is asked for, else mapped. Empty when it has nothing.
Packed take_from_cache(const Cache& cache, const Plan& plan, const WeightCacheOptions& options, const HugeMemory& memory, ThreadPool& pool,
                       WeightCacheReport& report) {
  Packed packed;
  Status found;
  if (memory) {
    found = CacheFile::copy_into(cache.options, cache.key, memory.bytes, pool);
    if (found) packed = {memory.bytes.data(), memory.owner};
  } else {
    auto file = CacheFile::open(cache.options, cache.key, plan.total, pool);
    if (!file) found = std::unexpected(std::move(file).error());
    if (file) packed = {file->data().data(), file->owner()};
    const bool large = file && huge_mapped_bytes(file->map()) >= plan.total / 4 * 3;
    if (file && !large && wants_large_pages(plan, options)) packed.mover = std::make_unique<PageMover>(file->map(), nodes_for(options));
  }
  if (!found && found.error().code != ErrorCode::kNotFound)
    report.note = fmt::format("weights are packed again: {}", found.error().message);
  return packed;
}

// The packed weights from the cache, or made now.
Packed bring_in(const Weights& weights, kernels::Backend& backend, const Plan& plan, const WeightCacheOptions& options,
                WeightCacheReport& report) {
  ThreadPool pool(std::min(usable_processors(), kCopyThreads));
  const auto cache = find_cache(weights, plan, backend.packed_layout(), options, pool, report);
  HugeMemory memory;
  const auto allocate = [&] {
    memory = allocate_huge(plan.total);
    if (memory) interleave(memory.bytes, nodes_for(options));  // refused: slower, not wrong
  };
  if (options.huge_pages == HugePages::kOn) allocate();
  if (cache) {
    if (Packed packed = take_from_cache(*cache, plan, options, memory, pool, report); packed.owner) return packed;
  }
  const auto pack_to = [&](Target target) {
    return [&, target](std::span<std::byte> out) { return pack_all(plan, weights, backend, pool, target, out); };
  };
  if (!memory && wants_large_pages(plan, options)) allocate();
  if (memory) return pack_into_memory(memory, cache, pack_to(Target::kMemory), report);
  if (cache) return pack_into_file(*cache, plan.total, pack_to(Target::kMappedFile), pool, report);
  return {};
}

}  // namespace

void make_deferred(Weights& weights) {
  DeferredByStart deferred = deferred_by_start(weights);
  for_each_matrix(weights, [&](const kernels::Weight& weight) {
    const auto found = weight.packed ? deferred.end() : deferred.find(weight.view.bytes.data());
    if (found == deferred.end()) return;
    found->second->make(0, found->second->rows, found->second->bytes.data());
    deferred.erase(found);
  });
  weights.deferred.clear();
}

WeightCacheReport attach_packed_weights(Model& model, const WeightCacheOptions& options) {
  const Plan plan = make_plan(model.weights_, *model.backend_);
  WeightCacheReport report;
  const TimePoint start = steady_clock().now();
  Packed packed =
      plan.total == 0 || plan.total < options.least_bytes ? Packed() : bring_in(model.weights_, *model.backend_, plan, options, report);
  if (packed.owner) {
    for (const auto* list : {&plan.places, &plan.shared})
      for (const Place& place : *list) place.weight->packed = packed.data + place.offset;
    model.weights_.owners.push_back(packed.owner);
    model.scratch_->mover = std::move(packed.mover);
    report.bytes = plan.total;
  }
  make_deferred(model.weights_);
  report.seconds = to_seconds(steady_clock().now() - start);
  return report;
}

namespace {

// The value of a variable with two settings; nothing when it is not set.
Result<std::optional<bool>> switch_from_environment(const char* name, std::string_view on, std::string_view off) {
  const char* value = std::getenv(name);
  if (!value || !*value) return std::optional<bool>();
  if (value == on || value == off) return std::optional(value == on);
  return fail(ErrorCode::kInvalidArgument, "{} is '{}': it can be '{}' or '{}'", name, value, on, off);
}

}  // namespace

Result<WeightCacheOptions> weight_cache_from_environment() {
  WeightCacheOptions options;
  WEIR_ASSIGN(const auto huge_pages, switch_from_environment("WEIR_HUGE_PAGES", "on", "off"));
  if (huge_pages) options.huge_pages = *huge_pages ? HugePages::kOn : HugePages::kOff;
  WEIR_ASSIGN(const auto numa, switch_from_environment("WEIR_NUMA", "interleave", "off"));
  options.interleave = numa.value_or(true);
  const char* value = std::getenv("WEIR_WEIGHT_CACHE");
  if (!value || !*value) return options;
  options.enabled = std::string_view(value) != "off";
  if (options.enabled) options.folder = value;
  return options;
}

}  // namespace weir::model
