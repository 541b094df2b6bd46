// SPDX-License-Identifier: Apache-2.0
#include "serving/server.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <map>

#include "api/response_store.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "serving/origin.h"
#include "serving/service.h"
#include "serving/service_manager.h"
#include "serving/watchdog.h"

namespace weir::serving {
namespace {

constexpr double kWattsPerProcessor = 8;  // assumed when the operator declares nothing; the answer says so
constexpr std::size_t kMaxIdLength = 128;
constexpr Duration kSessionsEnd = std::chrono::seconds(10);

api::ApiError overloaded(double retry_after_s) {
  return {.status = 429,
          .type = "rate_limit_error",
          .code = "overloaded",
          .message = "too many requests are being prepared: try again later",
          .retry_after_s = retry_after_s};
}

// What a client may call its request: printable, without what would break a log line or a header.
bool good_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxIdLength &&
         std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; });
}

// The request's own time limit, from its header.
api::ApiResult<Duration> timeout_of(const http::Request& request, const ServeOptions& options) {
  const std::string* header = request.headers.find("x-request-timeout-ms");
  if (header == nullptr) return options.default_timeout;
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(header->data(), header->data() + header->size(), ms);
  if (error != std::errc() || end != header->data() + header->size() || ms < 1)
    return std::unexpected(
        api::bad_request("x-request-timeout-ms", "the header x-request-timeout-ms should be a whole number of milliseconds, at least 1"));
  const std::int64_t most = std::chrono::duration_cast<std::chrono::milliseconds>(options.max_timeout).count();
  return std::chrono::milliseconds(std::min(ms, most));
}

std::map<std::string_view, HandlerRow> all_handlers() {
  std::map<std::string_view, HandlerRow> handlers;
  for (const auto rows : {text_handlers(), vector_handlers(), token_handlers(), operation_handlers()})
    for (const HandlerRow& row : rows) handlers.emplace(row.name, row);
  return handlers;
}

// The identity of who sends it, where the endpoint wants one.
api::ApiResult<Caller> identify(const Service& service, const api::Endpoint& endpoint, const http::Request& request) {
  const bool open = endpoint.access == api::Access::kOpen && !(endpoint.path == "/metrics" && service.parts.metrics_need_key);
  if (open) return Caller{};
  auto caller = service.access->identify(request);
  if (caller && caller->name.empty() && !origin_may_send(request.header("origin"), service.options.cors.origins))
    return std::unexpected(
        api::ApiError{.status = 403,
                      .type = "permission_error",
                      .code = "origin_not_allowed",
                      .message = "web pages of other origins may not use this server: name them with --cors-origins, or use keys"});
  if (caller && endpoint.access == api::Access::kAdmin && !caller->admin)
    return std::unexpected(
        api::ApiError{.status = 403, .type = "permission_error", .code = "not_allowed", .message = "this key may not operate the server"});
  return caller;
}

// From the head on: id, caller, time limit.
void handle(Service& service, const api::Endpoint& endpoint, const HandlerRow& row, http::Request request, http::Responder responder) {
  auto call = std::make_shared<Call>(endpoint, std::move(request), std::move(responder));
  const std::string_view given = call->request.header("x-request-id");
  call->id = new_id();
  call->headers.set("X-Request-Id", good_id(given) ? given : std::string_view(call->id));
  auto caller = identify(service, endpoint, call->request);
  if (!caller) return call->fail(caller.error());
  call->caller = std::move(*caller);
  if (service.draining && endpoint.uses_model)
    return call->fail(
        {.status = 503, .type = "server_error", .code = "shutting_down", .message = "the server is stopping", .retry_after_s = 5});
  auto timeout = timeout_of(call->request, service.options);
  if (!timeout) return call->fail(timeout.error());
  if (endpoint.uses_model && *timeout > Duration::zero()) {
    call->deadline = call->request.received + *timeout;
    call->responder.set_deadline(call->deadline);
    call->responder.on_gone([weak = std::weak_ptr(call)](http::Gone gone) {
      const auto alive = weak.lock();
      if (alive && gone == http::Gone::kDeadline)
        alive->fail(
            {.status = 504, .type = "server_error", .code = "timeout", .message = "the request was not begun within its time limit"});
    });
  }
  if (row.at_once) return row.handle(service, call);
  const bool taken = service.pool->post([&service, handler = row.handle, call] {
    if (call->responder.gone() == http::Gone::kNo) handler(service, call);
  });
  if (!taken) {
    observe(service, *call, call->record(), 429, "overloaded");
    for (const auto& [name, value] : service.access->limit_headers(call->caller)) call->headers.set(name, value);
    call->fail(overloaded(1));
  }
}

http::Route make_route(Service& service, const api::Endpoint& endpoint, const HandlerRow& row) {
  http::Route route;
  route.method = endpoint.method;
  route.pattern = endpoint.path;
  route.max_body_bytes = endpoint.request ? service.options.max_body_bytes : 0;
  route.handler = [&service, &endpoint, row](http::Request request, http::Responder responder) {
    handle(service, endpoint, row, std::move(request), std::move(responder));
  };
  // Who has no key is told before a body is read.
  route.precheck = [&service, &endpoint](const http::Request& request) -> std::optional<http::Response> {
    auto caller = identify(service, endpoint, request);
    if (caller) return std::nullopt;
    http::Response response = http::Response::json(caller.error().status, error_document(endpoint.error.name, caller.error()));
    if (caller.error().status == 401) response.headers.set("WWW-Authenticate", "Bearer");
    return response;
  };
  return route;
}

http::Response plain_error(int status, std::string_view code, std::string_view message) {
  const api::ApiError error{.status = status,
                            .type = status < 500 ? "invalid_request_error" : "server_error",
                            .code = std::string(code),
                            .message = std::string(message)};
  return http::Response::json(status, error_document("Error", error));
}

}  // namespace

bool reaches_outside(std::string_view address) {
  if (address.starts_with("unix:") || address.starts_with("fd:")) return false;
  const std::string_view host = address.substr(0, address.rfind(':'));
  return !(host == "localhost" || host == "[::1]" || host == "::1" || host.starts_with("127."));
}

class Server::Impl {
 public:
  Service service;
  std::unique_ptr<Watchdog> watchdog;
  std::unique_ptr<http::Server> http;
  std::thread loader;
  Status loaded{};

  ~Impl() {
    service.draining = true;
    http.reset();  // who still waits is told so, and gone
    if (service.pool) service.pool->stop();
    const TimePoint end = steady_clock().now() + kSessionsEnd;
    while (service.sessions > 0 && steady_clock().now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    watchdog.reset();
    if (service.registry) service.registry->stop();
    if (loader.joinable()) loader.join();
    service.pump.stop();
  }

  void set_up(ServeOptions options, ServerParts parts) {
    service.options = std::move(options);
    service.parts = std::move(parts);
    service.access = service.parts.access ? service.parts.access : open_access();
    SessionSettings& settings = service.settings;
    settings.comment_after = service.options.comment_after;
    settings.max_queued_bytes = service.options.max_queued_bytes;
    const int processors = service.options.cpu.threads > 0 ? service.options.cpu.threads : usable_processors();
    settings.watts = service.options.watts > 0 ? service.options.watts : kWattsPerProcessor * processors;
    settings.watts_source =
        service.options.watts > 0 ? "declared by the operator" : fmt::format("assumed, 8 W for each of {} processors", processors);
    service.responses = std::make_shared<api::ResponseStore>();
    service.started = std::time(nullptr);
    service.pool = std::make_unique<WorkPool>(service.options.prepare_threads, service.options.max_preparing);
    RegistryHooks hooks{.resolve = service.parts.resolve, .load = service.parts.load};
    if (Observer* observer = service.parts.observer.get()) {
      hooks.on_step = [observer](std::string_view model, const engine::StepRecord& step) { observer->on_step(model, step); };
      hooks.on_load = [observer](std::string_view model, bool in, Duration took) { observer->on_load(model, in, took); };
    }
    service.registry =
        ModelRegistry::create(service.options, std::move(hooks), service.parts.clock != nullptr ? *service.parts.clock : steady_clock());
    service.health = [this] { return health(); };
    service.dead = [this] { return watchdog->dead(); };
    service.http_stats = [this] { return http ? http->stats() : http::ServerStats{}; };
  }

  Status check() const {
    if (service.parts.access || service.options.insecure) return {};
    for (const std::string& address : service.options.listen) {
      if (reaches_outside(address))
        return fail(
            ErrorCode::kInvalidArgument,
            "listening on {} lets other machines in, and there are no keys: give a keys file, or --insecure if that is what you want",
            address);
    }
    return {};
  }

  Status start() {
    WEIR_TRY(check());
    for (ModelSpec& spec : service.options.models) WEIR_TRY(service.registry->add(spec));
    http::ServerOptions options;
    for (const std::string& address : service.options.listen)
      options.listen.push_back({.address = address, .tls = !service.options.tls.certificate.empty() && !address.starts_with("unix:")});
    options.tls = service.options.tls;
    options.limits = service.options.limits;
    options.cors = service.options.cors;
    options.io_threads = service.options.io_threads;
    options.error_response = plain_error;
    if (Observer* observer = service.parts.observer.get())
      options.on_request_done = [observer](const http::AccessRecord& record) { observer->on_http(record); };
    watchdog = std::make_unique<Watchdog>(service.registry, service.options.watchdog);
    WEIR_ASSIGN(http, http::Server::start(std::move(options), routes()));
    loader = std::thread([this] {
      loaded = service.registry->preload();
      service.loaded = true;
    });
    return {};
  }

  std::vector<http::Route> routes() {
    const auto handlers = all_handlers();
    std::vector<http::Route> routes;
    for (const api::Endpoint& endpoint : api::all_endpoints()) {
      const auto found = handlers.find(endpoint.handler);
      if (found == handlers.end()) {
        log::warn("{} {}: there is no handler \"{}\"", endpoint.method, endpoint.path, endpoint.handler);
        continue;
      }
      routes.push_back(make_route(service, endpoint, found->second));
    }
    return routes;
  }

  HealthReport health() const {
    HealthReport report;
    if (service.draining) report.reasons.emplace_back("the server is stopping");
    if (!service.loaded) report.reasons.emplace_back("models are being loaded");
    for (const ModelInfo& info : service.registry->list())
      if (info.phase == ModelPhase::kFailed) report.reasons.push_back(info.spec.name + ": could not be loaded");
    for (std::string& reason : watchdog->reasons()) report.reasons.push_back(std::move(reason));
    report.ready = report.reasons.empty();
    return report;
  }
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(ServeOptions options, ServerParts parts) {
  auto impl = std::make_unique<Impl>();
  impl->set_up(std::move(options), std::move(parts));
  WEIR_TRY(impl->start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::vector<std::string> Server::addresses() const { return impl_->http->addresses(); }

Status Server::wait_until_loaded() {
  if (impl_->loader.joinable()) impl_->loader.join();
  return impl_->loaded;
}

HealthReport Server::health() const { return impl_->health(); }
ModelRegistry& Server::registry() { return *impl_->service.registry; }
const ServeOptions& Server::options() const { return impl_->service.options; }
http::ServerStats Server::http_stats() const { return impl_->http->stats(); }
std::int64_t Server::open_sessions() const { return impl_->service.sessions; }
Status Server::reload_tls() { return impl_->http->reload_tls(); }

http::DrainReport Server::drain(Duration most) {
  impl_->service.draining = true;
  return impl_->http->drain(most);
}

}  // namespace weir::serving
