// SPDX-License-Identifier: Apache-2.0
#include "serving/service.h"

namespace weir::serving {

void Service::with_model(const std::shared_ptr<Call>& call, const std::string& asked, WithModel then) {
  std::string name = asked;
  if (name.empty()) {
    const auto first = registry->default_model();
    if (!first) return call->fail(api::bad_request("model", "which model? GET /v1/models lists them", "missing_required_parameter"));
    name = *first;
  }
  const auto target = registry->find(name);
  if (auto allowed = target ? access->may_use(call->caller, name) : api::ApiResult<void>(); !allowed) return call->fail(allowed.error());
  const auto here = std::this_thread::get_id();
  registry->acquire(name, [this, call, here, then = std::move(then)](api::ApiResult<ModelRegistry::Lease> lease) {
    if (!lease) {
      RequestRecord record = call->record();
      observe(*this, *call, std::move(record), lease.error().status, lease.error().code);
      return call->fail(lease.error());
    }
    if (std::this_thread::get_id() == here) return then(std::move(*lease));
    if (call->responder.gone() != http::Gone::kNo) return;  // waited in vain
    pool->post_again([then, lease = std::move(*lease)] { then(lease); });
  });
}

api::ApiResult<std::unique_ptr<Ticket>> Service::admit(Call& call, std::int64_t prompt_tokens, std::int64_t max_tokens) {
  auto ticket = access->admit(call.caller, prompt_tokens, max_tokens);
  for (const auto& [name, value] : access->limit_headers(call.caller)) call.headers.set(name, value);
  return ticket;
}

void observe(Service& service, const Call& call, RequestRecord record, int status, const std::string& error_code) {
  if (!service.parts.observer) return;
  record.status = status;
  record.error_code = error_code;
  if (record.timings.total_ms == 0)
    record.timings.total_ms = std::chrono::duration<double, std::milli>(steady_clock().now() - call.request.received).count();
  service.parts.observer->on_request(record);
}

}  // namespace weir::serving
