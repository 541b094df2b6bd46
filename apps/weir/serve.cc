// SPDX-License-Identifier: Apache-2.0
// weir serve: models behind HTTP, until it is told to stop.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "http/client.h"
#include "serving/access_keys.h"
#include "serving/config.h"
#include "serving/recorder.h"
#include "serving/server.h"
#include "serving/service_manager.h"
#include "store/pull.h"
#include "store/resolve.h"
#include "verbs.h"

namespace weir::cli {
namespace {

constexpr const char* kDefaultModel = "smollm2";

struct ServeVerb {
  std::vector<std::string> models;
  std::string config_file, hash_key;
  bool print_config = false, check_config = false, first_answer = false;
  std::vector<std::pair<CLI::Option*, const serving::OptionInfo*>> options;
};

// Signals come to the one thread that waits for them; all others, which inherit the mask, are left alone.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set_, number);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  int wait() const {
    int number = 0;
    ::sigwait(&set_, &number);
    return number;
  }

 private:
  sigset_t set_{};
};

Result<std::filesystem::path> find_model(const serving::ModelSpec& spec) {
  store::ProgressPrinter printer;
  return store::ensure(spec.source, printer.watcher([] { return interrupted(); }));
}

std::string url_of(const std::string& address, bool tls) { return (tls ? "https://" : "http://") + address; }

void print_ready(const serving::Server& server) {
  std::string names;
  for (const serving::ModelSpec& spec : server.options().models) names += (names.empty() ? "" : ", ") + spec.name;
  for (const std::string& address : server.addresses()) {
    const bool is_unix = address.starts_with("unix:");
    fmt::print("weir serves {} at {}\n", names, is_unix ? address : url_of(address, !server.options().tls.certificate.empty()) + "/v1");
  }
  if (server.addresses().empty() || server.options().models.empty() || server.addresses().front().starts_with("unix:")) return;
  fmt::print(
      "Try:  curl {}/v1/chat/completions -H 'Content-Type: application/json' -d "
      "'{{\"model\": \"{}\", \"messages\": [{{\"role\": \"user\", \"content\": \"Why is the sky blue?\"}}]}}'\n",
      url_of(server.addresses().front(), !server.options().tls.certificate.empty()), server.options().models.front().name);
  std::fflush(stdout);
}

int report_drain(const http::DrainReport& report) {
  for (const auto& cut : report.cut)
    fmt::print(stderr, "weir: cut {} {} after {}\n", cut.method, cut.route, format_duration(to_seconds(cut.age)));
  fmt::print(stderr, "weir: stopped; {} requests that were running could finish, {} were cut\n", report.finished, report.cut.size());
  return 0;
}

Result<serving::ServeConfig> read_config(const ServeVerb& verb) {
  serving::ConfigInput input{.file = verb.config_file};
  for (const auto& [option, info] : verb.options)
    for (const std::string& value : option->results()) input.flags.emplace_back(info->key, value);
  input.models = verb.models;
  WEIR_ASSIGN(serving::ServeConfig config, serving::load_config(input));
  if (config.serve.models.empty()) {
    WEIR_ASSIGN(serving::ModelSpec model, serving::parse_model_argument(kDefaultModel));
    config.serve.models.push_back(std::move(model));
  }
  return config;
}

// An entry for the keys file, of a new key or of the one on standard input (never of an argument, which others could read).
Status print_key_entry(const std::string& which, const serving::ServeConfig& config) {
  std::string key = which == "new" ? serving::make_key() : std::string();
  if (key.empty()) std::getline(std::cin, key);
  std::optional<std::array<unsigned char, 16>> salt;
  std::error_code ignored;
  if (std::filesystem::exists(config.keys_file, ignored)) {
    WEIR_ASSIGN(const serving::KeyTable table, serving::KeyTable::read(config.keys_file));
    salt = table.salt();
  }
  WEIR_ASSIGN(const std::string hash, serving::hash_key(key, salt));
  if (which == "new") fmt::print("# The key, shown this once: {}\n", key);
  fmt::print("[[keys]]\nname = \"NAME\"\nhash = \"{}\"\n", hash);
  return {};
}

// The parts that are told of a reload.
struct Operation {
  std::shared_ptr<serving::KeyedAccess> keys;
  std::shared_ptr<serving::Recorder> recorder;
};

Result<serving::ServerParts> make_parts(const serving::ServeConfig& config, Operation& operation) {
  serving::ServerParts parts;
  parts.resolve = find_model;
  parts.version = WEIR_VERSION;
  parts.metrics_need_key = config.metrics_need_key;
  parts.metrics = config.metrics;
  if (!config.keys_file.empty()) {
    WEIR_ASSIGN(operation.keys, serving::KeyedAccess::open(config.keys_file, config.default_limits));
    parts.access = operation.keys;
  }
  serving::RecorderOptions options{.access_log = config.access_log, .spans = config.spans};
  options.server_address = config.serve.listen.empty() ? std::string() : config.serve.listen.front();
  options.prefix_cache = config.serve.engine.prefix_cache;
  WEIR_ASSIGN(operation.recorder, serving::Recorder::start(std::move(options)));
  parts.observer = operation.recorder;
  return parts;
}

void reload(serving::Server& server, const Operation& operation) {
  serving::notify_reloading();
  const auto note = [&](const char* what, const Status& status) {
    operation.recorder->note_reload(what, status.has_value());
    if (status)
      log::info("read again: {}", what);
    else
      log::error("{} stay as they were: {}", what, status.error().message);
  };
  if (operation.keys) note("keys", operation.keys->reload());
  if (!server.options().tls.certificate.empty()) note("tls", server.reload_tls());
  note("log", operation.recorder->reopen_log());
  serving::notify_ready();
}

// One answer through the server itself, so that what is printed is what a client gets.
Status print_first_answer(const serving::Server& server) {
  WEIR_ASSIGN(auto client, http::Client::make());
  const json::Object body{{"model", server.options().models.front().name},
                          {"messages", json::Array{json::Object{{"role", "user"}, {"content", "Why is the sky blue?"}}}},
                          {"max_tokens", 64},
                          {"temperature", 0},
                          {"timings", true}};
  http::ClientRequest request;
  request.method = "POST";
  request.url = url_of(server.addresses().front(), false) + "/v1/chat/completions";
  request.body = boost::json::serialize(body);
  WEIR_ASSIGN(const http::ClientResponse response, client->fetch(std::move(request)));
  WEIR_ASSIGN(const json::Value answer, json::parse(response.body, "the first answer"));
  if (response.status != 200) return fail(ErrorCode::kInternal, "the first answer failed: {}", response.body);
  const json::Object& times = answer.at("timings").as_object();
  WEIR_ASSIGN(const double first_ms, json::get_double(times, "ttft_ms"));
  WEIR_ASSIGN(const double rate, json::get_double(times, "decode_tokens_per_s"));
  WEIR_ASSIGN(const std::int64_t tokens, json::get_int(times, "generated_tokens"));
  fmt::print("First answer: {} tokens, the first after {:.0f} ms, then {:.0f} tokens/s\n", tokens, first_ms, rate);
  return {};
}

int serve_until_told(serving::Server& server, const Signals& signals, const Operation& operation) {
  for (int number = signals.wait(); number == SIGHUP; number = signals.wait()) reload(server, operation);
  serving::notify_stopping();
  std::thread([&signals] {
    while (signals.wait() == SIGHUP) {
    }
    ::_exit(kExitInterrupted);  // told twice
  }).detach();
  return report_drain(server.drain(server.options().drain));
}

Status run(const ServeVerb& verb, int& exit_status) {
  WEIR_ASSIGN(serving::ServeConfig config, read_config(verb));
  if (!verb.hash_key.empty()) return print_key_entry(verb.hash_key, config);
  if (verb.print_config) {
    fmt::print("{}", serving::print_config(config));
    return {};
  }
  static const Signals signals;  // outlives the thread that waits for the second one
  log::set_level(std::min(config.log_level, log::level()));
  if (auto inherited = http::inherited_sockets(); !inherited.empty()) config.serve.listen = std::move(inherited);
  Operation operation;
  WEIR_ASSIGN(serving::ServerParts parts, make_parts(config, operation));
  if (verb.check_config) return {};
  WEIR_ASSIGN(auto server, serving::Server::start(std::move(config.serve), std::move(parts)));
  WEIR_TRY(server->wait_until_loaded());
  serving::notify_ready();
  if (verb.first_answer && !server->addresses().empty()) WEIR_TRY(print_first_answer(*server));
  print_ready(*server);
  exit_status = serve_until_told(*server, signals, operation);
  return {};
}

}  // namespace

void add_serve(CLI::App& app, int& exit_status) {
  auto verb = std::make_shared<ServeVerb>();
  CLI::App* serve = app.add_subcommand("serve", "Serve models over HTTP, as the clients of OpenAI, Anthropic and Ollama expect it");
  serve->add_option(
      "MODEL", verb->models,
      "NAME of the catalogue, NAME=SOURCE, or a GGUF file or Hugging Face folder; several are served side by side. Default: smollm2");
  serve->add_option("-c,--config", verb->config_file, "TOML file with any of the settings below; flags and WEIR_SERVE_… go before it");
  serve->add_flag("--print-config", verb->print_config, "Print the settings as they come together, as a file, and end");
  serve->add_flag("--check-config", verb->check_config, "End after the settings and keys have been checked");
  serve
      ->add_option("--hash-key", verb->hash_key,
                   "Print an entry for the keys file of a 'new' key, or of the one on standard input ('-'), and end")
      ->check(CLI::IsMember({"new", "-"}));
  serve->add_flag("--first-answer", verb->first_answer, "Print how fast a first answer came");
  for (const serving::OptionInfo& info : serving::serve_option_table()) {
    const std::string name = info.flag.substr(info.flag.find_first_not_of('-'));
    const std::string help =
        fmt::format("{} ({}; default {})", info.help, info.values, info.default_value.empty() ? "none" : info.default_value);
    CLI::Option* option = info.is_switch ? serve->add_flag("--" + name + ",!--no-" + name, help) : serve->add_option("--" + name, help);
    option->group(std::string(info.section));
    if (!info.is_switch)
      option->expected(1)->multi_option_policy(info.is_list ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
    verb->options.emplace_back(option, &info);
  }
  serve->footer(
      "Examples:\n"
      "  weir serve                                     the default model at http://127.0.0.1:8080/v1\n"
      "  weir serve smollm2 embed=./minilm --idle 10m   two models; those without requests leave memory\n"
      "  weir serve --listen 0.0.0.0:8080 --keys keys.toml --tls-certificate cert.pem --tls-key key.pem\n"
      "  weir serve --config weir.toml --print-config   where a setting comes from, put together\n"
      "Signals: TERM finishes what runs within --drain; HUP reads keys and certificates again and opens a new access log.\n");
  serve->callback([verb, &exit_status] {
    if (auto status = run(*verb, exit_status); !status) exit_status = report_error(status.error());
  });
}

}  // namespace weir::cli
