// SPDX-License-Identifier: Apache-2.0
#include "store/url.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <memory>

#include "store/names.h"

namespace weir::store {
namespace {

std::string part_of(CURLU* url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK || !text) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  for (unsigned char c : text)
    if (c <= 0x20 || c == 0x7f)
      return fail(ErrorCode::kInvalidArgument, "a URL cannot hold spaces or control characters; write them as %20");
  if (text.size() > 8000) return fail(ErrorCode::kInvalidArgument, "the URL is too long");
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> handle(curl_url(), curl_url_cleanup);
  const CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, std::string(text).c_str(), CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) return fail(ErrorCode::kInvalidArgument, "not a URL: {}", curl_url_strerror(code));
  Url url;
  url.text_ = std::string(text);
  url.scheme_ = part_of(handle.get(), CURLUPART_SCHEME);
  if (url.scheme_ != "http" && url.scheme_ != "https")
    return fail(ErrorCode::kInvalidArgument, "cannot download from a {}: address, only https: (or http:)", url.scheme_);
  url.host_ = lower_case(part_of(handle.get(), CURLUPART_HOST));
  url.port_ = part_of(handle.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  url.path_ = part_of(handle.get(), CURLUPART_PATH);
  if (url.host_.empty()) return fail(ErrorCode::kInvalidArgument, "the URL names no host");
  if (!part_of(handle.get(), CURLUPART_USER).empty() || !part_of(handle.get(), CURLUPART_PASSWORD).empty())
    return fail(ErrorCode::kInvalidArgument, "a URL with a user name or password inside is not accepted");
  return url;
}

bool Url::is_loopback() const {
  if (host_ == "localhost" || host_ == "[::1]") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, host_.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

std::string Url::shown() const { return text_.substr(0, text_.find_first_of("?#")); }

std::string Url::file_name() const {
  const std::string last = path_.substr(path_.rfind('/') + 1);
  int length = 0;
  char* decoded = curl_easy_unescape(nullptr, last.c_str(), static_cast<int>(last.size()), &length);
  if (!decoded) return {};
  std::string name(decoded, static_cast<std::size_t>(length));
  curl_free(decoded);
  return name;
}

Status check_transport(const Url& url, bool allow_http) {
  if (url.is_https() || url.is_loopback() || allow_http) return {};
  return fail(ErrorCode::kInvalidArgument, "{} is not encrypted: use https, or --allow-http if you trust the network in between",
              url.shown());
}

Status check_redirect(const Url& from, const Url& to, bool allow_http) {
  if (from.is_https() && !to.is_https())
    return fail(ErrorCode::kNetwork, "{} redirects to an unencrypted address ({}), which is refused", from.shown(), to.shown());
  return check_transport(to, allow_http);
}

}  // namespace weir::store
