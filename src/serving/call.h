// SPDX-License-Identifier: Apache-2.0
// One HTTP request on its way through the server: what arrived, who sent it, and how it is answered when things go wrong.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/api_error.h"
#include "api/endpoints.h"
#include "http/message.h"
#include "http/responder.h"
#include "serving/access.h"
#include "serving/observer.h"

namespace weir::serving {

struct Call {
  Call(const api::Endpoint& e, http::Request r, http::Responder answer)
      : endpoint(e), request(std::move(r)), responder(std::move(answer)) {}

  const api::Endpoint& endpoint;
  http::Request request;
  http::Responder responder;
  Caller caller = {};
  std::string id = {};         // unique; in X-Request-Id unless the client brought one
  http::Headers headers = {};  // of the answer, whatever it is
  TimePoint deadline = TimePoint::max();

  // In the shape of the endpoint's dialect.
  std::string error_document(const api::ApiError& error) const;
  void fail(const api::ApiError& error) const;
  void reply(http::Response response) const;
  void reply_json(std::string body) const { reply(http::Response::json(200, std::move(body))); }
  // What is known of it for whoever counts.
  RequestRecord record() const;
};

// The error of any dialect by the name of its schema in the endpoint's row.
std::string error_document(std::string_view schema, const api::ApiError& error);

// Random and unique: 24 hexadecimal digits.
std::string new_id();

}  // namespace weir::serving
