// SPDX-License-Identifier: Apache-2.0
#include "serving/model_registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <future>

#include "base/log.h"

namespace weir::serving {
namespace {

constexpr Duration kRetryFailed = std::chrono::seconds(5);  // a load that failed is tried again with a request after so long

api::ApiError unavailable(std::string code, std::string message, double retry_after_s) {
  return {.status = 503, .type = "server_error", .code = std::move(code), .message = std::move(message), .retry_after_s = retry_after_s};
}

api::ApiError not_found(std::string_view name) {
  return {.status = 404,
          .type = "invalid_request_error",
          .code = "model_not_found",
          .message = fmt::format("The model `{}` does not exist here; GET /v1/models lists those that do", name),
          .param = "model"};
}

}  // namespace

std::string_view phase_name(ModelPhase phase) {
  switch (phase) {
    case ModelPhase::kUnloaded: return "unloaded";
    case ModelPhase::kLoading: return "loading";
    case ModelPhase::kReady: return "ready";
    case ModelPhase::kLeaving: return "leaving";
    case ModelPhase::kFailed: return "failed";
  }
  return "unknown";
}

ModelLease::~ModelLease() {
  if (const auto registry = registry_.lock()) registry->release(*host_);
}

std::shared_ptr<ModelRegistry> ModelRegistry::create(const ServeOptions& options, RegistryHooks hooks, const Clock& clock) {
  std::shared_ptr<ModelRegistry> registry(new ModelRegistry(options, std::move(hooks), clock));
  registry->thread_ = std::thread([raw = registry.get()] { raw->run(); });
  return registry;
}

ModelRegistry::ModelRegistry(const ServeOptions& options, RegistryHooks hooks, const Clock& clock)
    : options_(options), hooks_(std::move(hooks)), clock_(clock) {}

ModelRegistry::~ModelRegistry() { stop(); }

Status ModelRegistry::add(ModelSpec spec) {
  const std::lock_guard lock(mutex_);
  if (spec.source.empty()) spec.source = spec.name;
  const auto taken = [&](const std::string& name) { return name.empty() || entries_.contains(name) || names_.contains(name); };
  std::vector<std::string> names = spec.aliases;
  for (const AdapterSpec& adapter : spec.adapters) names.push_back(adapter.name);
  names.push_back(spec.name);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (taken(names[i]) || std::ranges::count(names, names[i]) > 1)
      return fail(ErrorCode::kInvalidArgument, "the name \"{}\" of a model, alias or adapter is taken or empty", names[i]);
  for (const std::string& alias : spec.aliases) names_[alias] = {spec.name, {}};
  for (const AdapterSpec& adapter : spec.adapters) names_[adapter.name] = {spec.name, adapter.name};
  auto entry = std::make_unique<Entry>();
  const std::string name = spec.name;
  entry->spec = std::move(spec);
  entries_.emplace(name, std::move(entry));
  if (default_.empty()) default_ = name;
  return {};
}

std::optional<ModelRegistry::Target> ModelRegistry::find_locked(std::string_view name) const {
  if (const auto entry = entries_.find(name); entry != entries_.end()) return Target{entry->first, {}};
  if (const auto other = names_.find(name); other != names_.end()) return other->second;
  return std::nullopt;
}

std::optional<ModelRegistry::Target> ModelRegistry::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return find_locked(name);
}

std::optional<std::string> ModelRegistry::default_model() const {
  const std::lock_guard lock(mutex_);
  return default_.empty() ? std::nullopt : std::optional(default_);
}

ModelRegistry::Lease ModelRegistry::lease_of(Entry& entry, const std::string& adapter) {
  ++entry.leases;
  entry.last_used = clock_.now();
  return std::make_shared<ModelLease>(weak_from_this(), entry.host, adapter);
}

// The model is on its way to memory from here on. With the lock.
void ModelRegistry::want(Entry& entry) {
  if (entry.phase != ModelPhase::kUnloaded && entry.phase != ModelPhase::kFailed) return;
  entry.phase = ModelPhase::kLoading;
  jobs_.push_back(&entry);
  changed_.notify_all();
}

void ModelRegistry::acquire(std::string_view name, Acquired done) {
  std::unique_lock lock(mutex_);
  const auto refuse = [&](api::ApiError error) {
    lock.unlock();
    done(std::unexpected(std::move(error)));
  };
  const auto target = find_locked(name);
  if (!target) return refuse(not_found(name));
  if (stopping_) return refuse(unavailable("shutting_down", "the server is stopping", 5));
  Entry& entry = *entries_.find(target->model)->second;
  if (entry.phase == ModelPhase::kReady) {
    Lease lease = lease_of(entry, target->adapter);
    lock.unlock();
    return done(std::move(lease));
  }
  if (entry.phase == ModelPhase::kFailed && clock_.now() - entry.failed_at < kRetryFailed) return refuse(load_error(entry));
  if (entry.waiters.size() >= options_.max_load_waiters)
    return refuse(unavailable("model_loading", fmt::format("The model `{}` is being loaded and too many requests wait for it", name), 2));
  entry.waiters.push_back({std::move(done), target->adapter, clock_.now() + options_.load_patience});
  want(entry);
}

api::ApiResult<ModelRegistry::Lease> ModelRegistry::acquire_now(std::string_view name) {
  std::promise<api::ApiResult<Lease>> promise;
  acquire(name, [&](api::ApiResult<Lease> lease) { promise.set_value(std::move(lease)); });
  return promise.get_future().get();
}

void ModelRegistry::release(const ModelHost& host) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(host.spec().name);
  if (found == entries_.end() || found->second->host.get() != &host) return;
  Entry& entry = *found->second;
  entry.last_used = clock_.now();
  if (--entry.leases > 0 || entry.phase != ModelPhase::kLeaving) return;
  jobs_.push_back(&entry);
  changed_.notify_all();
}

void ModelRegistry::unload(std::string_view name, Duration patience, Done done) {
  std::unique_lock lock(mutex_);
  const auto target = find_locked(name);
  if (!target || !target->adapter.empty()) {
    lock.unlock();
    return done(std::unexpected(not_found(name)));
  }
  Entry& entry = *entries_.find(target->model)->second;
  if (entry.phase == ModelPhase::kUnloaded || entry.phase == ModelPhase::kFailed) {
    lock.unlock();
    return done({});
  }
  if (entry.phase == ModelPhase::kLoading) {
    lock.unlock();
    return done(std::unexpected(
        api::ApiError{.status = 409, .type = "invalid_request_error", .code = "model_loading", .message = "the model is being loaded"}));
  }
  entry.leaving.push_back(std::move(done));
  if (entry.phase == ModelPhase::kLeaving) return;
  entry.phase = ModelPhase::kLeaving;
  entry.leave_until = clock_.now() + patience;
  if (entry.leases > 0) return;
  jobs_.push_back(&entry);
  changed_.notify_all();
}

api::ApiResult<void> ModelRegistry::load_adapter(std::string_view model, const AdapterSpec& adapter, bool replace) {
  std::shared_ptr<ModelHost> host;
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    const auto target = find_locked(model);
    if (!target) return std::unexpected(not_found(model));
    const auto same = find_locked(adapter.name);
    if (adapter.name.empty() || (same && !(replace && !same->adapter.empty() && same->model == target->model)))
      return std::unexpected(api::bad_request("lora_name", fmt::format("the name \"{}\" is taken or empty", adapter.name)));
    name = target->model;
    host = entries_.find(name)->second->host;
  }
  if (host && host->engine() == nullptr)
    return std::unexpected(api::bad_request("model", "adapters are for models that generate text here", "unsupported_value"));
  if (host) {
    auto& adapters = host->engine()->adapters();
    if (auto status = replace ? adapters.replace(adapter.name, adapter.path) : adapters.load(adapter.name, adapter.path); !status) {
      log::warn("adapter {}: {}", adapter.name, status.error().message);
      return std::unexpected(
          api::bad_request("lora_name", "the adapter could not be loaded: it does not fit the model, or its files are not right"));
    }
  }
  const std::lock_guard lock(mutex_);
  names_[adapter.name] = {name, adapter.name};
  auto& all = entries_.find(name)->second->spec.adapters;
  std::erase_if(all, [&](const AdapterSpec& a) { return a.name == adapter.name; });
  all.push_back(adapter);
  return {};
}

api::ApiResult<void> ModelRegistry::unload_adapter(std::string_view adapter) {
  std::shared_ptr<ModelHost> host;
  const std::string name(adapter);
  {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(name);
    if (found == names_.end() || found->second.adapter.empty()) return std::unexpected(not_found(name));
    Entry& entry = *entries_.find(found->second.model)->second;
    std::erase_if(entry.spec.adapters, [&](const AdapterSpec& a) { return a.name == name; });
    host = entry.host;
    names_.erase(found);
  }
  // Requests that run keep theirs.
  if (host && host->engine() != nullptr) {
    if (auto status = host->engine()->adapters().unload(name); !status) log::warn("{}", status.error().message);
  }
  return {};
}

std::vector<ModelInfo> ModelRegistry::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<ModelInfo> all;
  for (const auto& [name, entry] : entries_) {
    all.push_back({.spec = entry->spec,
                   .phase = entry->phase,
                   .error = entry->error,
                   .bytes = entry->bytes,
                   .leases = entry->leases,
                   .idle = entry->leases > 0 ? Duration{} : clock_.now() - entry->last_used,
                   .load_took = entry->load_took,
                   .context = entry->host ? entry->host->context() : 0,
                   .capabilities = entry->capabilities});
  }
  return all;
}

std::vector<std::shared_ptr<ModelHost>> ModelRegistry::hosts() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ModelHost>> hosts;
  for (const auto& [name, entry] : entries_)
    if (entry->host) hosts.push_back(entry->host);
  return hosts;
}

std::uint64_t ModelRegistry::bytes_locked() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, entry] : entries_) bytes += entry->bytes;
  return bytes;
}

std::uint64_t ModelRegistry::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_locked();
}

Status ModelRegistry::preload() {
  std::vector<std::string> names;
  for (const ModelInfo& info : list())
    if (info.spec.preload) names.push_back(info.spec.name);
  for (const std::string& name : names) {
    if (auto lease = acquire_now(name); !lease) {
      const std::lock_guard lock(mutex_);
      const std::string& why = entries_.find(name)->second->error;
      return fail(ErrorCode::kInvalidArgument, "{}: {}", name, why.empty() ? lease.error().message : why);
    }
  }
  return {};
}

void ModelRegistry::tick() {
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.now();
    for (const auto& [name, entry] : entries_) {
      const bool idle = options_.idle_unload > Duration::zero() && !entry->spec.pinned && entry->leases == 0 &&
                        now - entry->last_used >= options_.idle_unload;
      if (entry->phase == ModelPhase::kReady && idle) {
        entry->phase = ModelPhase::kLeaving;
        entry->leave_until = TimePoint::max();
        jobs_.push_back(entry.get());
        changed_.notify_all();
      }
      if (entry->phase == ModelPhase::kLeaving && entry->leases > 0 && now >= entry->leave_until) {
        entry->phase = ModelPhase::kReady;
        settle_leaving(*entry,
                       std::unexpected(api::ApiError{.status = 409,
                                                     .type = "invalid_request_error",
                                                     .code = "model_in_use",
                                                     .message = fmt::format("{} requests still use the model: it stays", entry->leases),
                                                     .retry_after_s = 5}),
                       calls);
        serve_waiters(*entry, calls);
      }
      std::erase_if(entry->waiters, [&](Waiter& waiter) {
        if (now < waiter.until) return false;
        calls.push_back([done = std::move(waiter.done)] {
          done(std::unexpected(unavailable("model_loading", "the model was not in memory within the time that a request may wait", 10)));
        });
        return true;
      });
    }
  }
  for (const auto& call : calls) call();
}

void ModelRegistry::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ && !thread_.joinable()) return;
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  Calls calls;
  std::vector<std::shared_ptr<ModelHost>> hosts;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, entry] : entries_) {
      refuse_waiters(*entry, unavailable("shutting_down", "the server is stopping", 5), calls);
      settle_leaving(*entry, {}, calls);
      hosts.push_back(std::move(entry->host));
      entry->bytes = 0;
      entry->phase = ModelPhase::kUnloaded;
    }
  }
  for (const auto& call : calls) call();
}

void ModelRegistry::serve_waiters(Entry& entry, Calls& calls) {
  for (Waiter& waiter : entry.waiters)
    calls.push_back([done = std::move(waiter.done), lease = lease_of(entry, waiter.adapter)]() mutable { done(std::move(lease)); });
  entry.waiters.clear();
}

void ModelRegistry::refuse_waiters(Entry& entry, const api::ApiError& error, Calls& calls) {
  for (Waiter& waiter : entry.waiters) calls.push_back([done = std::move(waiter.done), error] { done(std::unexpected(error)); });
  entry.waiters.clear();
}

void ModelRegistry::settle_leaving(Entry& entry, const api::ApiResult<void>& result, Calls& calls) {
  for (Done& done : entry.leaving) calls.push_back([done = std::move(done), result] { done(result); });
  entry.leaving.clear();
}

api::ApiError ModelRegistry::load_error(const Entry& entry) {
  if (entry.exhausted)
    return unavailable("insufficient_memory", fmt::format("There is no room in memory for the model `{}` now", entry.spec.name), 30);
  // What is wrong with the files is the operator's business: the log has it.
  return unavailable("model_load_failed", fmt::format("The model `{}` could not be loaded; the server's log says why", entry.spec.name),
                     30);
}

}  // namespace weir::serving
