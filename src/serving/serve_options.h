// SPDX-License-Identifier: Apache-2.0
// Everything that can be set of a server, as one plain struct. Flags, environment and the configuration file fill it (config.h); the
// server reads nothing else.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "http/server.h"
#include "kernels/cpu_backend.h"

namespace weir::serving {

struct AdapterSpec {
  std::string name;
  std::filesystem::path path;
};

// One model that the server may load.
struct ModelSpec {
  std::string name;    // what clients call it
  std::string source;  // catalogue name, GGUF file or Hugging Face folder; empty: the name
  std::vector<std::string> aliases = {};
  std::vector<AdapterSpec> adapters = {};
  std::string output_format = {};  // "hermes", …; empty: guessed from the template
  std::string chat_template = {};  // a file that replaces the model's own; empty: none
  std::string rerank_method = {};  // "head", "yes-no", "embedding"; empty: by the model
  std::string pooling = {};        // of embeddings: "mean", "cls", "last", …; empty: by the model
  bool preload = true;             // at the start; else with the first request
  bool pinned = false;             // never unloaded, neither idle nor for others' sake
  std::string draft = {};          // a smaller model of the same vocabulary that guesses; a source as above, empty: none

  // Where it differs from ServeOptions::engine.
  std::optional<std::int64_t> context = {}, cache_tokens = {};
  std::optional<std::uint64_t> cache_bytes = {};
  std::optional<DType> kv_type = {};
  std::optional<std::int32_t> max_running = {};
  std::optional<std::string> policy = {};
};

struct ServeOptions {
  std::vector<ModelSpec> models = {};

  // Where it listens. Without keys only addresses of this machine are allowed unless `insecure`.
  std::vector<std::string> listen = {"127.0.0.1:8080"};
  bool insecure = false;
  http::TlsFiles tls = {};  // used when a certificate is named
  http::Cors cors = {};
  http::ServerLimits limits = {};
  std::size_t max_body_bytes = 32u << 20;
  int io_threads = 1;

  // How models run.
  kernels::CpuOptions cpu = {};
  engine::EngineOptions engine = {.max_wait = {}, .policy = "auto"};  // of each model; a lasting overload is refused.
                                                                      // auto: fair-share among keys, else first-come
  bool keyed = false;                                                 // there are keys
  std::uint64_t memory_budget = 0;                                    // bytes of all models together; 0 = what the machine has
  Duration idle_unload = {};                                          // without a request; zero: never
  Duration load_patience = std::chrono::seconds(120);                 // a request waits so long for its model, then 503
  std::size_t max_load_waiters = 256;                                 // beyond: 503 at once

  // Requests.
  std::int32_t max_prompts = 1024;   // of one request
  std::size_t max_preparing = 1024;  // requests on their way to an engine: beyond, 429
  int prepare_threads = 2;           // templates and tokenizers
  Duration default_timeout = {};     // of a request without x-request-timeout-ms; zero: none
  Duration max_timeout = std::chrono::hours(1);
  Duration comment_after = std::chrono::seconds(15);  // silent streams get a comment
  std::size_t max_queued_bytes = 1u << 20;            // of a stream whose client reads slowly: beyond, it is cut
  bool share_prefixes = false;                        // between keys

  // Operation.
  Duration drain = std::chrono::seconds(30);
  Duration watchdog = std::chrono::seconds(10);  // a step loop that stands still for so long is not ready
  double watts = 0;                              // of the machine at work, for the estimate of energy; 0 = 8 W for each processor used
  std::filesystem::path adapter_folder = {};     // adapters that may be loaded by name at run time; empty: none
};

// The engine's options for one model (config.cc), without `draft` and `on_step`, which are for whoever loads it.
engine::EngineOptions engine_options(const ServeOptions& options, const ModelSpec& model);

}  // namespace weir::serving
