// SPDX-License-Identifier: Apache-2.0
#include "store/http_get.h"

#include <curl/curl.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace weir::store {
namespace {

constexpr int kMaxRedirects = 10;

using Easy = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using HeaderList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

// One hop: a request and its response, without following where it points.
struct Hop {
  const HttpRequest& request;
  const HttpHandlers& handlers;
  ResponseHead head;
  bool first_origin = true;
  bool body_begun = false;
  std::optional<Error> refused;  // by a handler
  bool stopped = false, stalled = false;
  curl_off_t seen = -1;
  std::chrono::steady_clock::time_point last_byte = std::chrono::steady_clock::now();

  bool wanted() const { return head.status == 200 || head.status == 206; }
  bool begin_body() {
    if (body_begun || !wanted()) return true;
    body_begun = true;
    Status status = handlers.on_head ? handlers.on_head(head) : Status{};
    if (!status) refused = std::move(status).error();
    return status.has_value();
  }
};

std::size_t on_header(char* data, std::size_t, std::size_t size, void* user) {
  Hop& hop = *static_cast<Hop*>(user);
  const std::string sha256 = hop.head.linked_sha256;
  const auto linked_size = hop.head.linked_size;
  read_header_line({data, size}, hop.head);
  if (!hop.first_origin) {  // another host cannot vouch for the file
    hop.head.linked_sha256 = sha256;
    hop.head.linked_size = linked_size;
  }
  const bool head_ends = std::string_view(data, size).find_first_not_of("\r\n") == std::string_view::npos;
  return head_ends && !hop.begin_body() ? 0 : size;  // judged before the body arrives
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* user) {
  Hop& hop = *static_cast<Hop*>(user);
  if (!hop.wanted()) return size;
  Status status = hop.handlers.on_body ? hop.handlers.on_body(std::as_bytes(std::span(data, size))) : Status{};
  if (status) return size;
  hop.refused = std::move(status).error();
  return 0;
}

int on_tick(void* user, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
  Hop& hop = *static_cast<Hop*>(user);
  const auto now = std::chrono::steady_clock::now();
  if (received != hop.seen) {
    hop.seen = received;
    hop.last_byte = now;
  }
  hop.stalled = now - hop.last_byte > hop.request.timeouts.stall;
  hop.stopped = hop.request.should_stop && hop.request.should_stop();
  return hop.stopped || hop.stalled ? 1 : 0;
}

bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
  }
}

// Debian's libcurl reads the system's certificates; these variables, as the curl program honours them, name others.
void set_certificates(CURL* easy) {
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* file = std::getenv(name); file && *file) {
      curl_easy_setopt(easy, CURLOPT_CAINFO, file);
      return;
    }
}

void set_up(CURL* easy, Hop& hop, const Url& url, char* message) {
  curl_easy_setopt(easy, CURLOPT_URL, url.text().c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(hop.request.timeouts.connect.count()));
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &hop);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &hop);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_tick);
  curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &hop);
  if (url.is_loopback()) curl_easy_setopt(easy, CURLOPT_PROXY, "");  // this machine is never behind a proxy
  set_certificates(easy);
}

// What went wrong with this hop, if anything.
std::optional<Error> error_of(const Hop& hop, const Url& url, CURLcode code, const char* message) {
  const auto error = [&](ErrorCode kind, std::string text) { return Error{kind, fmt::format("{}: {}", url.shown(), text)}; };
  if (hop.refused) return hop.refused;
  if (hop.stopped) return error(ErrorCode::kCancelled, "stopped; repeat the command to continue");
  if (hop.stalled)
    return error(ErrorCode::kDeadline,
                 fmt::format("nothing came for {} s", std::chrono::duration<double>(hop.request.timeouts.stall).count()));
  if (code == CURLE_OK) return std::nullopt;
  return error(ErrorCode::kNetwork, *message ? message : curl_easy_strerror(code));
}

HeaderList headers_for(const HttpRequest& request, const Url& url) {
  HeaderList list(nullptr, curl_slist_free_all);
  const auto add = [&](const std::string& line) { list.reset(curl_slist_append(list.release(), line.c_str())); };
  add("User-Agent: weir");
  add("Accept-Encoding: identity");
  for (const std::string& header : request.headers) add(header);
  const bool private_line = url.is_https() || url.is_loopback();
  if (!request.token.empty() && private_line && url.same_origin(request.url)) add("Authorization: Bearer " + request.token);
  return list;
}

Result<Url> redirect_target(CURL* easy, const HttpRequest& request, const Url& from) {
  char* location = nullptr;
  curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &location);
  if (!location) return fail(ErrorCode::kNetwork, "{}: the server redirects without saying where", from.shown());
  Result<Url> to = Url::parse(location);
  if (!to) return std::unexpected(std::move(to).error().with_context(from.shown() + " redirects to a bad address"));
  WEIR_TRY(check_redirect(from, *to, request.allow_http));
  return to;
}

bool is_redirect(int status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

}  // namespace

HttpOutcome http_get(const HttpRequest& request, const HttpHandlers& handlers) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  HttpOutcome outcome;
  if (Status allowed = check_transport(request.url, request.allow_http); !allowed) {
    outcome.error = std::move(allowed).error();
    return outcome;
  }
  Easy easy(curl_easy_init(), curl_easy_cleanup);
  if (!easy) {
    outcome.error = Error{ErrorCode::kExhausted, "no memory for a transfer"};
    return outcome;
  }
  Url url = request.url;
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    Hop hop{.request = request,
            .handlers = handlers,
            .head = std::move(outcome.head),
            .first_origin = url.same_origin(request.url),
            .refused = {}};
    char message[CURL_ERROR_SIZE] = "";
    curl_easy_reset(easy.get());  // keeps the connections
    set_up(easy.get(), hop, url, message);
    const HeaderList headers = headers_for(request, url);
    curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, headers.get());
    const CURLcode code = curl_easy_perform(easy.get());
    outcome.error = error_of(hop, url, code, message);
    outcome.retriable = !hop.refused && !hop.stopped && (hop.stalled || may_pass(code));
    outcome.head = std::move(hop.head);
    if (outcome.error || !is_redirect(outcome.head.status)) return outcome;
    Result<Url> target = redirect_target(easy.get(), request, url);
    if (!target) {
      outcome.error = std::move(target).error();
      return outcome;
    }
    url = std::move(*target);
  }
  outcome.error = Error{ErrorCode::kNetwork, fmt::format("{}: more than {} redirects", request.url.shown(), kMaxRedirects)};
  return outcome;
}

}  // namespace weir::store
