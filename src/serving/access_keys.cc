// SPDX-License-Identifier: Apache-2.0
#include "serving/access_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::serving {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::unexpected<api::ApiError> refuse(int status, std::string type, std::string code, std::string message, double retry_after_s = 0) {
  return std::unexpected(api::ApiError{
      .status = status, .type = std::move(type), .code = std::move(code), .message = std::move(message), .retry_after_s = retry_after_s});
}

std::unexpected<api::ApiError> not_known(std::string code, std::string message) {
  return refuse(401, "authentication_error", std::move(code), std::move(message));
}

std::int64_t sum_or_most(std::int64_t a, std::int64_t b) {
  a = std::max<std::int64_t>(a, 0);
  b = std::max<std::int64_t>(b, 0);
  return a > std::numeric_limits<std::int64_t>::max() / 4 || b > std::numeric_limits<std::int64_t>::max() / 4
             ? std::numeric_limits<std::int64_t>::max() / 4
             : a + b;
}

class KeyTicket final : public Ticket {
 public:
  KeyTicket(std::shared_ptr<KeyUsage> usage, std::int64_t charged, const Clock& clock)
      : usage_(std::move(usage)), charged_(charged), clock_(clock), started_(clock.now()) {}
  ~KeyTicket() override { usage_->end(clock_.now() - started_); }
  KeyTicket(const KeyTicket&) = delete;
  KeyTicket& operator=(const KeyTicket&) = delete;

  void settle(std::int64_t prompt_tokens, std::int64_t generated_tokens) override {
    usage_->settle(charged_, sum_or_most(prompt_tokens, generated_tokens));
  }

 private:
  std::shared_ptr<KeyUsage> usage_;
  std::int64_t charged_;
  const Clock& clock_;
  TimePoint started_;
};

std::unexpected<api::ApiError> too_much(const Caller& caller, const KeyUsage::Refusal& refusal) {
  const double wait = to_seconds(refusal.retry_after);
  const auto message = [&](std::string_view what) {
    return fmt::format("The key '{}' has reached its limit of {} {}. Try again in {}.", caller.name, refusal.limit, what,
                       reset_time(refusal.retry_after));
  };
  switch (refusal.why) {
    case KeyUsage::Refusal::Why::kRequests: return refuse(429, "requests", "rate_limit_exceeded", message("requests per minute"), wait);
    case KeyUsage::Refusal::Why::kTokens: return refuse(429, "tokens", "rate_limit_exceeded", message("tokens per minute"), wait);
    case KeyUsage::Refusal::Why::kConcurrent: break;
  }
  return refuse(429, "requests", "concurrency_limit_exceeded", message("requests at a time"), wait);
}

}  // namespace

std::string_view presented_key(const http::Headers& headers) {
  const std::string_view authorization = trimmed(headers.get("Authorization"));
  constexpr std::string_view kBearer = "Bearer";
  if (authorization.size() > kBearer.size() && http::equal_ignoring_case(authorization.substr(0, kBearer.size()), kBearer) &&
      (authorization[kBearer.size()] == ' ' || authorization[kBearer.size()] == '\t'))
    return trimmed(authorization.substr(kBearer.size()));
  for (const char* name : {"x-api-key", "api-key"})
    if (const std::string_view key = trimmed(headers.get(name)); !key.empty()) return key;
  return {};
}

KeyedAccess::KeyedAccess(KeyTable table, const Clock& clock, UnixClock unix_clock) : clock_(clock), unix_clock_(std::move(unix_clock)) {
  if (!unix_clock_)
    unix_clock_ = [] {
      return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    };
  replace(std::move(table));
}

Result<std::shared_ptr<KeyedAccess>> KeyedAccess::open(const std::filesystem::path& file, const KeyLimits& defaults, const Clock& clock,
                                                       UnixClock unix_clock) {
  WEIR_ASSIGN(KeyTable table, KeyTable::read(file, defaults));
  auto access = std::make_shared<KeyedAccess>(std::move(table), clock, std::move(unix_clock));
  access->file_ = file;
  access->defaults_ = defaults;
  return access;
}

Status KeyedAccess::reload() {
  WEIR_ASSIGN(KeyTable table, KeyTable::read(file_, defaults_));
  replace(std::move(table));
  return {};
}

void KeyedAccess::replace(KeyTable table) {
  auto next = std::make_shared<Books>();
  next->table = std::move(table);
  const std::lock_guard lock(mutex_);
  for (const KeyRecord& key : next->table.keys()) {
    std::shared_ptr<KeyUsage> usage;
    if (books_)
      if (const auto before = books_->by_name.find(key.name); before != books_->by_name.end()) usage = before->second.second;
    if (usage)
      usage->set_limits(key.limits);
    else
      usage = std::make_shared<KeyUsage>(key.limits, clock_);
    next->by_name.emplace(key.name, std::pair(&key, std::move(usage)));
  }
  books_ = std::move(next);
}

std::shared_ptr<const KeyedAccess::Books> KeyedAccess::books() const {
  const std::lock_guard lock(mutex_);
  return books_;
}

api::ApiResult<Caller> KeyedAccess::identify(const http::Request& head) const {
  const auto current = books();
  const std::string_view shown = presented_key(head.headers);
  const KeyRecord* key = shown.empty() ? current->table.find_certificate(head.client_certificate) : current->table.find(shown);
  if (!key && shown.empty())
    return not_known("missing_api_key", "This server needs an API key: send it as 'Authorization: Bearer KEY' or 'x-api-key: KEY'.");
  if (!key) return not_known("invalid_api_key", "The API key is not known here.");
  if (key->expires && unix_clock_() >= *key->expires)
    return not_known("expired_api_key", fmt::format("The key '{}' has expired.", key->name));
  return Caller{.name = key->name, .tenant = key->tenant, .max_priority = key->max_priority, .admin = key->admin};
}

api::ApiResult<void> KeyedAccess::may_use(const Caller& caller, std::string_view model) const {
  const auto current = books();
  const auto key = current->by_name.find(caller.name);
  if (key != current->by_name.end() && may_use_model(*key->second.first, model)) return {};
  return refuse(403, "permission_error", "model_not_allowed", fmt::format("The key '{}' may not use the model '{}'.", caller.name, model));
}

api::ApiResult<std::unique_ptr<Ticket>> KeyedAccess::admit(const Caller& caller, std::int64_t prompt_tokens, std::int64_t max_tokens) {
  const auto current = books();
  const auto key = current->by_name.find(caller.name);
  if (key == current->by_name.end()) return not_known("invalid_api_key", "The API key is not known here any more.");
  const std::shared_ptr<KeyUsage>& usage = key->second.second;
  const std::int64_t charged = sum_or_most(prompt_tokens, max_tokens);
  if (const auto refusal = usage->admit(charged)) return too_much(caller, *refusal);
  return std::make_unique<KeyTicket>(usage, charged, clock_);
}

std::vector<std::pair<std::string, std::string>> KeyedAccess::limit_headers(const Caller& caller) {
  const auto current = books();
  const auto key = current->by_name.find(caller.name);
  if (key == current->by_name.end()) return {};
  return key->second.second->headers();
}

}  // namespace weir::serving
