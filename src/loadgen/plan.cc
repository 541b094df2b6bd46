// SPDX-License-Identifier: Apache-2.0
#include "loadgen/plan.h"

namespace weir::loadgen {
namespace {

std::string limit_member(std::int64_t max_tokens) { return max_tokens > 0 ? fmt::format(",\"max_tokens\":{}", max_tokens) : std::string(); }

}  // namespace

std::string json_string(std::string_view text) { return boost::json::serialize(boost::json::string_view(text.data(), text.size())); }

std::string message(std::string_view role, std::string_view text) {
  return fmt::format("{{\"role\":{},\"content\":{}}}", json_string(role), json_string(text));
}

BodyWriter::BodyWriter(const RequestShape& shape) {
  json::Object fixed{{"model", shape.model}, {"stream", shape.stream}};
  if (shape.stream) fixed["stream_options"] = {{"include_usage", true}};
  if (shape.ignore_eos) fixed["ignore_eos"] = true;
  if (shape.timings) fixed["timings"] = true;
  for (const auto& [key, value] : shape.extra) fixed[key] = value;
  before_ = boost::json::serialize(fixed);
  before_.pop_back();
  before_ += shape.chat ? ",\"messages\":[" : ",\"prompt\":";
  after_ = shape.chat ? "]" : "";
}

void BodyWriter::append(std::string& out, std::string_view content, std::int64_t max_tokens) const {
  out += before_;
  out += content;
  out += after_;
  out += limit_member(max_tokens);
  out += '}';
}

std::size_t BodyWriter::size(std::string_view content, std::int64_t max_tokens) const {
  return before_.size() + content.size() + after_.size() + limit_member(max_tokens).size() + 1;
}

}  // namespace weir::loadgen
