// SPDX-License-Identifier: Apache-2.0
// The seam between the server and whoever knows keys and limits: who sends a request, what they may use, and what it counts. The server
// asks three times: at the head (before a body is read), when the model is known, and when the prompt's tokens are counted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/api_error.h"
#include "http/message.h"

namespace weir::serving {

struct Caller {
  std::string name = {};    // of the key, for logs and metrics; never the key itself. Empty: nobody in particular
  std::string tenant = {};  // whose share it uses, and who shares its cached prefixes; by default each key is one
  std::int32_t max_priority = 0;
  bool admin = false;  // may load and unload models and adapters
};

// One admitted request; its end counts it off. From any thread.
class Ticket {
 public:
  virtual ~Ticket() = default;
  // What it came to in the end; called once at most. Without it, the request counts as admitted.
  virtual void settle(std::int64_t prompt_tokens, std::int64_t generated_tokens) = 0;
};

// All calls come from several threads at once and return at once.
class Access {
 public:
  virtual ~Access() = default;
  // From the headers (Authorization: Bearer, x-api-key) or the client's certificate. 401.
  virtual api::ApiResult<Caller> identify(const http::Request& head) const = 0;
  // 403 with code "model_not_allowed".
  virtual api::ApiResult<void> may_use(const Caller& caller, std::string_view model) const = 0;
  // A request of so many prompt tokens and answers of at most so many. 429 with Retry-After.
  virtual api::ApiResult<std::unique_ptr<Ticket>> admit(const Caller& caller, std::int64_t prompt_tokens, std::int64_t max_tokens) = 0;
  // x-ratelimit-… as OpenAI's, for the answers to this caller, refusals included.
  virtual std::vector<std::pair<std::string, std::string>> limit_headers(const Caller& /*caller*/) { return {}; }
};

// Everybody may do everything; the server then binds to loopback unless it is told to be insecure.
std::shared_ptr<Access> open_access();

}  // namespace weir::serving
