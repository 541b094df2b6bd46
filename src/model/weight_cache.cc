// SPDX-License-Identifier: Apache-2.0
#include "model/weight_cache.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>

#include "base/cache_file.h"
#include "base/clock.h"
#include "base/huge_memory.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "base/units.h"

namespace weir::model {
namespace {

constexpr std::uint64_t kAlignment = 4096;      // of a weight in the cache, so that its pages can be given back
constexpr int kCopyThreads = 16;                // more gain nothing: memory is the limit
constexpr std::uint64_t kWorthAFile = 4 << 20;  // smaller models gain nothing that anybody would see

// Calls f for the matrix of every linear layer.
template <class F>
void for_each_matrix(Weights& weights, F f) {
  const auto linear = [&](auto&... layers) { ((layers.weight ? f(*layers.weight) : void()), ...); };
  const auto ffn = [&](FfnWeights& w) { linear(w.gate, w.up, w.gate_up, w.down); };
  linear(weights.head, weights.pooler);
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

std::string identity(const MappedFile& file) {
  std::error_code error;
  const auto path = std::filesystem::canonical(file.path(), error);
  struct stat info{};
  if (error || ::stat(path.c_str(), &info) != 0) return {};
  return fmt::format("{} {} {}.{:09} {}:{}\n", path.string(), info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_dev,
                     info.st_ino);
}

// Empty when a file cannot be identified.
std::string key_of(const Weights& weights, const Plan& plan, const std::string& layout) {
  std::string key = layout + "\n";
  for (const auto& file : weights.files) {
    const std::string one = identity(*file);
    if (one.empty()) return {};
    key += one;
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

// `mapped`: pages of a file's mapping are given back once written.
enum class Target { kMemory, kMappedFile };

void pack_all(const Plan& plan, const Weights& weights, kernels::Backend& backend, Target target, std::span<std::byte> out) {
  for (const Place& place : plan.places) {
    const auto part = out.subspan(place.offset, place.bytes);
    backend.pack(*place.weight, part);
    if (target == Target::kMappedFile) ::madvise(part.data(), part.size(), MADV_DONTNEED);
    std::uint64_t offset = 0;
    if (const MappedFile* file = file_of(weights, *place.weight, offset)) file->release(offset, place.weight->view.bytes.size());
  }
}

// Memory with large pages, when this machine has them and room to spare for it; else none.
HugeMemory memory_for(const Plan& plan, HugePages wish) {
  constexpr std::uint64_t kSpare = 256 << 20;
  if (wish == HugePages::kOff) return {};
  if (wish == HugePages::kAuto && (!huge_pages_allowed() || available_memory().value_or(UINT64_MAX) < plan.total + kSpare)) return {};
  return allocate_huge(plan.total);
}

std::filesystem::path default_folder() {
  if (const char* cache = std::getenv("WEIR_CACHE"); cache && *cache) return std::filesystem::path(cache) / "weights";
  const char* home = std::getenv("HOME");
  return home && *home ? std::filesystem::path(home) / ".cache/weir/weights" : std::filesystem::path();
}

// Where this model's packed weights are kept between starts.
struct Cache {
  CacheFile::Options options;
  std::string key;
};

std::optional<Cache> find_cache(const Model& model, const Plan& plan, const std::string& layout, const WeightCacheOptions& options,
                                WeightCacheReport& report) {
  if (!options.enabled) return std::nullopt;
  Cache cache{{.folder = options.folder.empty() ? default_folder() : options.folder, .limit_bytes = options.limit_bytes},
              key_of(model.weights(), plan, layout)};
  if (!cache.key.empty() && !cache.options.folder.empty()) return cache;
  report.note = "the weight cache is off: the model's file or the home folder cannot be found by name";
  return std::nullopt;
}

// Packed weights, wherever they lie; no owner: nowhere.
struct Packed {
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner = {};
};

// Runs `pack` unless the cache has what it would make.
Packed into_memory(const HugeMemory& memory, const std::optional<Cache>& cache, const std::function<void(std::span<std::byte>)>& pack,
                   ThreadPool& pool, WeightCacheReport& report) {
  const Packed packed{memory.bytes.data(), memory.owner};
  if (cache) {
    const Status found = CacheFile::copy_into(cache->options, cache->key, memory.bytes, pool);
    if (found) return packed;
    if (found.error().code != ErrorCode::kNotFound) report.note = fmt::format("weights are packed again: {}", found.error().message);
  }
  pack(memory.bytes);
  report.made = true;
  if (!cache) return packed;
  if (const Status kept = CacheFile::store(cache->options, cache->key, memory.bytes, pool); !kept)
    report.note = fmt::format("the weight cache is off, each start packs anew: {}", kept.error().message);
  return packed;
}

Packed into_file(const Cache& cache, std::uint64_t bytes, const std::function<void(std::span<std::byte>)>& pack, ThreadPool& pool,
                 WeightCacheReport& report) {
  auto found = CacheFile::open(cache.options, cache.key, bytes, pool);
  if (!found) {
    if (found.error().code != ErrorCode::kNotFound) report.note = fmt::format("weights are packed again: {}", found.error().message);
    found = CacheFile::create(cache.options, cache.key, bytes, pack, pool);
    report.made = found.has_value();
  }
  if (found) return {found->data().data(), found->owner()};
  report.note = fmt::format("the weight cache is off: {}", found.error().message);
  return {};
}

}  // namespace

WeightCacheReport attach_packed_weights(Model& model, const WeightCacheOptions& options) {
  WeightCacheReport report;
  const TimePoint start = steady_clock().now();
  const Plan plan = make_plan(model.weights_, *model.backend_);
  if (plan.total < kWorthAFile) return report;
  const auto cache = find_cache(model, plan, model.backend_->packed_layout(), options, report);
  ThreadPool pool(std::min(usable_processors(), kCopyThreads));
  const HugeMemory memory = memory_for(plan, options.huge_pages);
  const auto pack_to = [&](Target target) {
    return [&, target](std::span<std::byte> out) { pack_all(plan, model.weights_, *model.backend_, target, out); };
  };
  Packed packed;
  if (memory) {
    packed = into_memory(memory, cache, pack_to(Target::kMemory), pool, report);
  } else if (cache) {
    packed = into_file(*cache, plan.total, pack_to(Target::kMappedFile), pool, report);
  }
  if (!packed.owner) return report;
  for (const auto* list : {&plan.places, &plan.shared})
    for (const Place& place : *list) place.weight->packed = packed.data + place.offset;
  model.weights_.owners.push_back(packed.owner);
  report.bytes = plan.total;
  report.seconds = to_seconds(steady_clock().now() - start);
  return report;
}

WeightCacheOptions weight_cache_from_environment() {
  WeightCacheOptions options;
  if (const char* huge = std::getenv("WEIR_HUGE_PAGES"))
    options.huge_pages = std::string_view(huge) == "off"  ? HugePages::kOff
                         : std::string_view(huge) == "on" ? HugePages::kOn
                                                          : HugePages::kAuto;
  const char* value = std::getenv("WEIR_WEIGHT_CACHE");
  if (!value || !*value) return options;
  options.enabled = std::string_view(value) != "off";
  if (options.enabled) options.folder = value;
  return options;
}

}  // namespace weir::model
