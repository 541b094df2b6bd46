// SPDX-License-Identifier: Apache-2.0
// Any bytes as a stream of events, whole and byte by byte: the same events; and every event can be written and read back.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "http/sse.h"

namespace {

using namespace weir::http;

std::vector<SseEvent> read(std::string_view bytes, std::size_t step) {
  SseParser parser(1 << 16);
  std::vector<SseEvent> events;
  const auto keep = [&](SseEvent& event) { events.push_back(std::move(event)); };
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    if (!parser.feed(bytes.substr(at, step), keep)) break;
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = read(bytes, size + 1);
  const auto pieces = read(bytes, 1);
  WEIR_CHECK(whole.size() == pieces.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    WEIR_CHECK(whole[i].data == pieces[i].data && whole[i].event == pieces[i].event && whole[i].id == pieces[i].id);
    const auto again = read(format_event(whole[i].data, whole[i].event, whole[i].id), 3);
    WEIR_CHECK(again.size() == 1 && again[0].data == whole[i].data);
  }
  const auto formatted = read(format_event(bytes, "e", "i"), size + 64);
  WEIR_CHECK(formatted.size() == 1 || size > 1 << 15);
  return 0;
}
