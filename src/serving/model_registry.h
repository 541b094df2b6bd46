// SPDX-License-Identifier: Apache-2.0
// The models of a server by name: which are in memory, who waits for one, and which leaves when room or time runs out. A request holds a
// lease while it uses a model; nothing is unloaded under a lease. One thread loads and unloads, so that a start is never done twice.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/api_error.h"
#include "base/clock.h"
#include "serving/model_host.h"

namespace weir::serving {

class ModelRegistry;

// The right to use a model. Its end may let the model go.
class ModelLease {
 public:
  ModelLease(std::weak_ptr<ModelRegistry> registry, std::shared_ptr<ModelHost> host, std::string adapter)
      : registry_(std::move(registry)), host_(std::move(host)), adapter_(std::move(adapter)) {}
  ~ModelLease();
  ModelLease(const ModelLease&) = delete;
  ModelLease& operator=(const ModelLease&) = delete;

  ModelHost& host() const { return *host_; }
  const std::string& model() const { return host_->spec().name; }
  const std::string& adapter() const { return adapter_; }

 private:
  std::weak_ptr<ModelRegistry> registry_;
  std::shared_ptr<ModelHost> host_;
  std::string adapter_;
};

enum class ModelPhase { kUnloaded, kLoading, kReady, kLeaving, kFailed };
std::string_view phase_name(ModelPhase phase);  // "unloaded", "loading", "ready", "leaving", "failed"

struct ModelInfo {
  ModelSpec spec;
  ModelPhase phase = ModelPhase::kUnloaded;
  std::string error;                           // why the last load failed, for the operator
  std::uint64_t bytes = 0;                     // in memory now
  std::int64_t leases = 0;                     // requests that use it
  Duration idle{};                             // since the last of them
  Duration load_took{};                        // the last time
  std::int64_t context = 0;                    // while it is in memory
  std::vector<std::string> capabilities = {};  // known once it has been loaded
};

struct RegistryHooks {
  // Where a model's files lie; may fetch them. On the loading thread.
  std::function<Result<std::filesystem::path>(const ModelSpec&)> resolve;
  // How it comes to memory; absent: ModelHost::load.
  std::function<Result<std::shared_ptr<ModelHost>>(const ModelSpec&, const std::filesystem::path&)> load = {};
  std::function<void(std::string_view model, const engine::StepRecord&)> on_step = {};
  std::function<void(std::string_view model, bool loaded, Duration took)> on_load = {};
};

class ModelRegistry : public std::enable_shared_from_this<ModelRegistry> {
 public:
  using Lease = std::shared_ptr<ModelLease>;
  using Acquired = std::function<void(api::ApiResult<Lease>)>;
  using Done = std::function<void(api::ApiResult<void>)>;

  // `options` must outlive it.
  static std::shared_ptr<ModelRegistry> create(const ServeOptions& options, RegistryHooks hooks, const Clock& clock = steady_clock());
  ~ModelRegistry();

  // Names a model; nothing is loaded yet. kInvalidArgument for a name that is taken.
  Status add(ModelSpec spec);
  // Its name here, when clients may call it so: by name, alias, or that of an adapter.
  struct Target {
    std::string model, adapter;
  };
  std::optional<Target> find(std::string_view name) const;
  // The first that was named, for requests that name none.
  std::optional<std::string> default_model() const;

  // `done` comes at once when the model is in memory or cannot be had, else from the loading thread: 404 for unknown names, 503 when too
  // many wait, when it takes longer than the patience, or when there is no room for it.
  void acquire(std::string_view name, Acquired done);
  // The same, waiting. Not from the loading thread.
  api::ApiResult<Lease> acquire_now(std::string_view name);

  // Takes a model from memory once the requests that use it have ended; those that come meanwhile wait until it is back. When they do not
  // end within `patience` it stays: 409.
  void unload(std::string_view name, Duration patience, Done done);
  // Adapters of a model, in memory or not.
  // `replace`: one of the same name and model may be there; it then goes, or stays when the new one cannot be loaded.
  api::ApiResult<void> load_adapter(std::string_view model, const AdapterSpec& adapter, bool replace = false);
  api::ApiResult<void> unload_adapter(std::string_view name);

  std::vector<ModelInfo> list() const;
  std::vector<std::shared_ptr<ModelHost>> hosts() const;  // in memory
  std::uint64_t bytes() const;

  // Waits for all models that are to be there at the start; the first error.
  Status preload();
  // Lets go what has been idle for long, and those who wait too long. Now and then, from one thread.
  void tick();
  // Unloads everything; who waits is told.
  void stop();

 private:
  friend class ModelLease;
  struct Waiter {
    Acquired done;
    std::string adapter;
    TimePoint until{};
  };
  struct Entry {
    ModelSpec spec;
    ModelPhase phase = ModelPhase::kUnloaded;
    std::shared_ptr<ModelHost> host;
    std::int64_t leases = 0;
    std::uint64_t bytes = 0, last_bytes = 0;
    TimePoint last_used{}, failed_at{}, leave_until{};
    Duration load_took{};
    std::string error;
    std::vector<std::string> capabilities;
    bool exhausted = false;  // the last load failed for want of memory
    std::vector<Waiter> waiters;
    std::vector<Done> leaving;
  };
  using Calls = std::vector<std::function<void()>>;  // made without the lock

  ModelRegistry(const ServeOptions& options, RegistryHooks hooks, const Clock& clock);
  void run();
  // model_loading.cc: on the thread
  void load(Entry& entry);
  Result<std::shared_ptr<ModelHost>> bring(Entry& entry, const ModelSpec& spec, std::uint64_t known_bytes);
  static void add_late_adapters(const ModelHost& host, const ModelSpec& as_loaded, const ModelSpec& now);
  void unload(Entry& entry);
  Status make_room(Entry& entry, std::uint64_t bytes);
  std::uint64_t budget() const;
  std::uint64_t bytes_locked() const;
  void release(const ModelHost& host);
  Lease lease_of(Entry& entry, const std::string& adapter);
  void want(Entry& entry);
  void serve_waiters(Entry& entry, Calls& calls);
  void refuse_waiters(Entry& entry, const api::ApiError& error, Calls& calls);
  void settle_leaving(Entry& entry, const api::ApiResult<void>& result, Calls& calls);
  static api::ApiError load_error(const Entry& entry);
  std::optional<Target> find_locked(std::string_view name) const;

  const ServeOptions& options_;
  RegistryHooks hooks_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::string default_;
  std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries_;
  std::map<std::string, Target, std::less<>> names_;  // aliases and adapters
  std::deque<Entry*> jobs_;                           // to be loaded or unloaded, by their phase
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::serving
