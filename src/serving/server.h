// SPDX-License-Identifier: Apache-2.0
// The whole service: routes from the table of endpoints, keys, models, health, drain. It knows no command line and no files of settings:
// whoever starts it gives plain options and the parts that are others' business.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/server.h"
#include "serving/access.h"
#include "serving/model_registry.h"
#include "serving/observer.h"
#include "serving/serve_options.h"

namespace weir::serving {

struct ServerParts {
  std::shared_ptr<Access> access = {};      // null: everybody may do everything, and only this machine may call unless `insecure`
  std::shared_ptr<Observer> observer = {};  // null: nobody counts
  bool metrics_need_key = false, metrics = true;
  std::function<Result<std::filesystem::path>(const ModelSpec&)> resolve = {};  // RegistryHooks
  std::function<Result<std::shared_ptr<ModelHost>>(const ModelSpec&, const std::filesystem::path&)> load = {};
  std::string version = {};
  const Clock* clock = nullptr;  // of the registry's times; null: the machine's
};

struct HealthReport {
  bool ready = false;
  std::vector<std::string> reasons = {};  // why not
};

class Server {
 public:
  // Binds and answers; models that are to be preloaded come meanwhile (wait_until_loaded()).
  static Result<std::unique_ptr<Server>> start(ServeOptions options, ServerParts parts);
  ~Server();

  std::vector<std::string> addresses() const;
  Status wait_until_loaded();
  HealthReport health() const;
  ModelRegistry& registry();
  const ServeOptions& options() const;
  http::ServerStats http_stats() const;
  std::int64_t open_sessions() const;

  Status reload_tls();
  // Stops accepting, lets what runs finish within the time, then cuts.
  http::DrainReport drain(Duration most);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whether an address can be reached from other machines.
bool reaches_outside(std::string_view address);

}  // namespace weir::serving
