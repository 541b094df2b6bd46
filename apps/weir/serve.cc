// SPDX-License-Identifier: Apache-2.0
// weir serve: models behind HTTP, until it is told to stop.
#include <fmt/core.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/units.h"
#include "http/client.h"
#include "serving/server.h"
#include "serving/service_manager.h"
#include "store/pull.h"
#include "store/resolve.h"
#include "verbs.h"

namespace weir::cli {
namespace {

constexpr const char* kDefaultModel = "smollm2";

struct ServeVerb {
  std::vector<std::string> models, listen;
  bool insecure = false, hello = false;
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

// NAME, NAME=SOURCE, or a path, whose file name is the model's name.
serving::ModelSpec parse_model(const std::string& text) {
  serving::ModelSpec spec;
  const std::size_t equals = text.find('=');
  spec.source = equals == std::string::npos ? text : text.substr(equals + 1);
  spec.name = equals == std::string::npos ? text : text.substr(0, equals);
  if (equals == std::string::npos && text.find('/') != std::string::npos) {
    const std::filesystem::path path(text);
    spec.name = path.has_filename() ? path.stem().string() : path.parent_path().filename().string();
  }
  return spec;
}

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

Status run(const ServeVerb& verb, int& exit_status) {
  const Signals signals;
  serving::ServeOptions options;
  options.insecure = verb.insecure;
  if (!verb.listen.empty()) options.listen = verb.listen;
  for (const std::string& model : verb.models) options.models.push_back(parse_model(model));
  if (options.models.empty()) options.models.push_back(parse_model(kDefaultModel));
  if (auto inherited = http::inherited_sockets(); !inherited.empty()) options.listen = std::move(inherited);
  serving::ServerParts parts;
  parts.resolve = find_model;
  parts.version = WEIR_VERSION;
  WEIR_ASSIGN(auto server, serving::Server::start(std::move(options), std::move(parts)));
  WEIR_TRY(server->wait_until_loaded());
  serving::notify_ready();
  print_ready(*server);
  for (int number = signals.wait(); number == SIGHUP; number = signals.wait()) {
    serving::notify_reloading();
    if (auto status = server->reload_tls(); !status) log::error("{}", status.error().message);
    serving::notify_ready();
  }
  serving::notify_stopping();
  std::thread([&signals] {
    signals.wait();
    ::_exit(kExitInterrupted);  // told twice
  }).detach();
  exit_status = report_drain(server->drain(server->options().drain));
  return {};
}

}  // namespace

void add_serve(CLI::App& app, int& exit_status) {
  auto verb = std::make_shared<ServeVerb>();
  CLI::App* serve = app.add_subcommand("serve", "Serve models over HTTP, as OpenAI's clients expect it");
  serve->add_option("MODEL", verb->models, "NAME of the catalogue, NAME=PATH, or PATH of a GGUF file or Hugging Face folder");
  serve->add_option("--listen", verb->listen, "ADDRESS:PORT, unix:PATH or fd:N; port 0: any free");
  serve->add_flag("--insecure", verb->insecure, "Let other machines in without keys");
  serve->callback([verb, &exit_status] {
    if (auto status = run(*verb, exit_status); !status) exit_status = report_error(status.error());
  });
}

}  // namespace weir::cli
