// SPDX-License-Identifier: Apache-2.0
#include "http/server_core.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <ctime>

#include "base/log.h"

namespace weir::http {
namespace {

std::string_view error_code_of(int status) {
  switch (status) {
    case 400: return "bad_request";
    case 404: return "not_found";
    case 405: return "method_not_allowed";
    case 408: return "request_timeout";
    case 413: return "body_too_large";
    case 414: return "target_too_long";
    case 417: return "expectation_failed";
    case 431: return "headers_too_large";
    case 500: return "internal_error";
    case 501: return "not_implemented";
    case 503: return "overloaded";
    case 504: return "deadline_exceeded";
    default: return "error";
  }
}

// RFC 9110 5.6.7, made once a second on each thread.
const std::string& date_now() {
  thread_local std::time_t made = 0;
  thread_local std::string text;
  const std::time_t now = std::time(nullptr);
  if (now == made) return text;
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&now, &utc);
  text = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday, kMonths[utc.tm_mon], utc.tm_year + 1900,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
  made = now;
  return text;
}

bool is_ours(std::string_view name) {
  for (const std::string_view ours : {"Content-Length", "Transfer-Encoding", "Connection", "Date", "Keep-Alive", "Trailer", "Upgrade"}) {
    if (equal_ignoring_case(name, ours)) return true;
  }
  return false;
}

void add_line(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

}  // namespace

Response ServerCore::error(int status, std::string_view message) const {
  const std::string_view code = error_code_of(status);
  if (options.error_response) {
    try {
      return options.error_response(status, code, message);
    } catch (const std::exception& fault) {
      log::error("http: the handler of errors failed: {}", fault.what());
    }
  }
  return Response::json(status, fmt::format(R"({{"error":{{"code":"{}","message":{}}}}})", code,
                                            boost::json::serialize(boost::json::string(message.data(), message.size()))));
}

void ServerCore::report(const AccessRecord& record) const {
  if (!options.on_request_done) return;
  try {
    options.on_request_done(record);
  } catch (const std::exception& fault) {
    log::error("http: the observer of requests failed: {}", fault.what());
  }
}

std::string format_response_head(const Response& response, const HeadFraming& framing, std::string_view server_name) {
  using Body = HeadFraming::Body;
  std::string out;
  out.reserve(384);
  out += fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  if (!server_name.empty() && !response.headers.has("Server")) add_line(out, "Server", server_name);
  add_line(out, "Date", date_now());
  for (const auto& [name, value] : response.headers) {
    if (is_token(name) && !is_ours(name)) add_line(out, name, header_safe(value));
  }
  if (framing.body == Body::kLength) add_line(out, "Content-Length", std::to_string(framing.length));
  if (framing.body == Body::kChunked) add_line(out, "Transfer-Encoding", "chunked");
  if (!framing.keep_alive) {
    add_line(out, "Connection", "close");
  } else if (framing.http_1_0) {
    add_line(out, "Connection", "keep-alive");
  }
  out += "\r\n";
  return out;
}

void add_cors(const Cors& cors, std::string_view origin, Headers& headers, bool preflight) {
  if (cors.origins.empty() || origin.empty()) return;
  const bool any = std::find(cors.origins.begin(), cors.origins.end(), "*") != cors.origins.end();
  headers.add("Vary", "Origin");
  if (!any && std::find(cors.origins.begin(), cors.origins.end(), origin) == cors.origins.end()) return;
  headers.set("Access-Control-Allow-Origin", any && !cors.allow_credentials ? "*" : origin);
  if (cors.allow_credentials) headers.set("Access-Control-Allow-Credentials", "true");
  if (!preflight) return;
  headers.set("Access-Control-Allow-Methods", headers.get("Allow"));
  headers.set("Access-Control-Allow-Headers", cors.allow_headers);
  headers.set("Access-Control-Max-Age", std::to_string(cors.max_age_s));
}

}  // namespace weir::http
