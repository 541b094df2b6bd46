// SPDX-License-Identifier: Apache-2.0
// The registry's thread: brings models to memory, makes room for them, and gives memory back.
#include <malloc.h>

#include <algorithm>

#include "base/log.h"
#include "base/system_memory.h"
#include "serving/model_registry.h"

namespace weir::serving {
namespace {

std::uint64_t bytes_of_files(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return std::filesystem::file_size(path, error);
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(path, error))
    if (file.is_regular_file(error)) bytes += file.file_size(error);
  return bytes;
}

}  // namespace

void ModelRegistry::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    Entry& entry = *jobs_.front();
    jobs_.pop_front();
    const ModelPhase phase = entry.phase;
    const bool free = entry.leases == 0;
    lock.unlock();
    if (phase == ModelPhase::kLoading)
      load(entry);
    else if (phase == ModelPhase::kLeaving && free)
      unload(entry);
    lock.lock();
  }
}

std::uint64_t ModelRegistry::budget() const {
  if (options_.memory_budget > 0) return options_.memory_budget;
  constexpr double kUsable = 0.9;
  const std::uint64_t available = available_memory().value_or(UINT64_MAX / 4);
  return bytes() + static_cast<std::uint64_t>(kUsable * static_cast<double>(available));
}

Status ModelRegistry::make_room(Entry& entry, std::uint64_t bytes) {
  while (true) {
    Entry* oldest = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t limit = options_.memory_budget;
      if (bytes_locked() + bytes <= limit || limit == 0) break;
      for (const auto& [name, other] : entries_) {
        if (other.get() == &entry || other->phase != ModelPhase::kReady || other->leases > 0 || other->spec.pinned) continue;
        if (oldest == nullptr || other->last_used < oldest->last_used) oldest = other.get();
      }
      if (oldest == nullptr) {
        const std::uint64_t used = bytes_locked();
        return fail(ErrorCode::kExhausted, "{} bytes are needed, {} of {} are used by models that are busy or pinned", bytes, used, limit);
      }
      oldest->phase = ModelPhase::kLeaving;
    }
    unload(*oldest);
  }
  if (options_.memory_budget == 0 && bytes > budget()) return fail(ErrorCode::kExhausted, "{} bytes are needed and not available", bytes);
  return {};
}

// The model in memory, or why not; nothing of it is left then.
Result<std::shared_ptr<ModelHost>> ModelRegistry::bring(Entry& entry, const ModelSpec& spec, std::uint64_t known_bytes) {
  const auto place_of = [this](const ModelSpec& model) -> Result<std::filesystem::path> {
    if (hooks_.resolve) return hooks_.resolve(model);
    return std::filesystem::path(model.source);
  };
  WEIR_ASSIGN(const std::filesystem::path path, place_of(spec));
  WEIR_TRY(make_room(entry, known_bytes > 0 ? known_bytes : bytes_of_files(path) + engine_options(options_, spec).cache_bytes));
  if (hooks_.load) return hooks_.load(spec, path);
  ModelHost::OnStep on_step;
  if (hooks_.on_step) on_step = [hook = hooks_.on_step, name = spec.name](const engine::StepRecord& record) { hook(name, record); };
  std::filesystem::path draft;
  if (!spec.draft.empty()) {
    ModelSpec draft_spec;
    draft_spec.name = draft_spec.source = spec.draft;
    WEIR_ASSIGN(draft, place_of(draft_spec));
  }
  return ModelHost::load(spec, path, options_, std::move(on_step), draft);
}

// Adapters that were named while the model was on its way.
void ModelRegistry::add_late_adapters(const ModelHost& host, const ModelSpec& as_loaded, const ModelSpec& now) {
  if (host.engine() == nullptr) return;
  for (const AdapterSpec& adapter : now.adapters) {
    if (std::ranges::any_of(as_loaded.adapters, [&](const AdapterSpec& a) { return a.name == adapter.name; })) continue;
    if (auto added = host.engine()->adapters().load(adapter.name, adapter.path); !added) log::error("{}", added.error().message);
  }
}

void ModelRegistry::load(Entry& entry) {
  const TimePoint start = clock_.now();
  ModelSpec spec;
  std::uint64_t known_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    spec = entry.spec;
    known_bytes = entry.last_bytes;
  }
  auto host = bring(entry, spec, known_bytes);
  // The estimate may have been too low.
  if (host && options_.memory_budget > 0 && (*host)->bytes() > known_bytes) {
    if (auto room = make_room(entry, (*host)->bytes()); !room) host = std::unexpected(std::move(room).error());
  }
  const Duration took = clock_.now() - start;
  if (host)
    log::info("{}: in memory after {:.2f} s", spec.name, to_seconds(took));
  else
    log::error("{}: {}", spec.name, host.error().message);
  if (host && hooks_.on_load) hooks_.on_load(spec.name, true, took);
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    entry.load_took = took;
    if (host) {
      add_late_adapters(**host, spec, entry.spec);
      entry.phase = ModelPhase::kReady;
      entry.error.clear();
      entry.bytes = entry.last_bytes = (*host)->bytes();
      entry.last_used = clock_.now();
      entry.capabilities = (*host)->capabilities();
      entry.host = std::move(*host);
      serve_waiters(entry, calls);
    } else {
      entry.phase = ModelPhase::kFailed;
      entry.failed_at = clock_.now();
      entry.exhausted = host.error().code == ErrorCode::kExhausted;
      entry.error = host.error().message;
      refuse_waiters(entry, load_error(entry), calls);
    }
  }
  for (const auto& call : calls) call();
}

void ModelRegistry::unload(Entry& entry) {
  std::shared_ptr<ModelHost> host;
  std::string name;
  const TimePoint start = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    if (entry.phase != ModelPhase::kLeaving || entry.leases > 0) return;
    host = std::move(entry.host);
    name = entry.spec.name;
  }
  host.reset();
  ::malloc_trim(0);
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    entry.bytes = 0;
    entry.phase = ModelPhase::kUnloaded;
    entry.last_used = clock_.now();
    settle_leaving(entry, {}, calls);
    if (!entry.waiters.empty()) want(entry);
  }
  log::info("{}: left memory", name);
  if (hooks_.on_load) hooks_.on_load(name, false, clock_.now() - start);
  for (const auto& call : calls) call();
}

}  // namespace weir::serving
