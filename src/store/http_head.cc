// SPDX-License-Identifier: Apache-2.0
// The few response headers that matter to a download. Anything malformed counts as absent.
#include <algorithm>
#include <charconv>

#include "base/sha256.h"
#include "store/http_get.h"
#include "store/names.h"

namespace weir::store {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value > (std::uint64_t{1} << 62)) return std::nullopt;
  return value;
}

// "bytes 0-99/200", "bytes 0-99/*", "bytes */200"
std::optional<ContentRange> content_range(std::string_view text) {
  if (!lower_case(text.substr(0, 6)).starts_with("bytes ")) return std::nullopt;
  text = trimmed(text.substr(6));
  const std::size_t slash = text.find('/'), dash = text.find('-');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange range;
  if (text.substr(0, slash) != "*") {
    if (dash == std::string_view::npos || dash > slash) return std::nullopt;
    range.first = number(text.substr(0, dash));
    if (!range.first) return std::nullopt;
  }
  range.total = number(text.substr(slash + 1));
  return range;
}

std::string unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return lower_case(text);
}

void read_status_line(std::string_view line, ResponseHead& head) {
  // Only what the origin said about the file outlives a redirect or an interim response.
  ResponseHead fresh;
  fresh.linked_sha256 = std::move(head.linked_sha256);
  fresh.linked_size = head.linked_size;
  head = std::move(fresh);
  const std::size_t space = line.find(' ');
  if (space != std::string_view::npos) head.status = static_cast<int>(number(trimmed(line).substr(space + 1, 3)).value_or(0));
  head.framed = line.starts_with("HTTP/2") || line.starts_with("HTTP/3");
}

}  // namespace

void read_header_line(std::string_view line, ResponseHead& head) {
  if (line.starts_with("HTTP/")) return read_status_line(line, head);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = lower_case(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "content-length") {
    head.content_length = number(value);
    head.framed = head.framed || head.content_length.has_value();
  } else if (name == "transfer-encoding") {
    head.framed = head.framed || lower_case(value).ends_with("chunked");
  } else if (name == "content-range") {
    head.content_range = content_range(value);
  } else if (name == "etag") {
    head.etag = value.size() <= 256 && std::ranges::all_of(value, [](unsigned char c) { return c > 0x20 && c < 0x7f; }) ? value : "";
  } else if (name == "retry-after") {
    if (const auto seconds = number(value); seconds && *seconds < 100000) head.retry_after = std::chrono::seconds(*seconds);
  } else if (name == "x-error-message") {
    head.reason = printable(value);
  } else if (name == "x-linked-etag") {
    if (const std::string hex = unquoted(value); is_sha256(hex)) head.linked_sha256 = hex;
  } else if (name == "x-linked-size") {
    head.linked_size = number(value);
  }
}

}  // namespace weir::store
