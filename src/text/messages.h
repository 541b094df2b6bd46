// SPDX-License-Identifier: Apache-2.0
// A conversation as chat templates read it: an array of {"role", "content", …}. Callers add turns; the JSON's shape is known
// here only.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace weir::text {

class Messages {
 public:
  Messages& add(std::string_view role, std::string_view content);
  Messages& system(std::string_view content) { return add("system", content); }
  Messages& user(std::string_view content) { return add("user", content); }
  Messages& assistant(std::string_view content) { return add("assistant", content); }
  // The assistant asks for functions to be called: `calls` as in OpenAI's API. Arguments written as JSON text become the object
  // that templates expect. Without content there is no "content" key, as with transformers.
  Messages& assistant_calls(std::string_view content, const json::Array& calls);
  // What a function answered.
  Messages& tool(std::string_view name, std::string_view call_id, std::string_view content);

  // The last turn goes away, if there is one.
  void pop();
  bool empty() const { return messages_.empty(); }
  std::size_t size() const { return messages_.size(); }
  json::Array to_json() const { return messages_; }

 private:
  json::Array messages_;
};

// Messages from outside, checked and brought to the shape templates expect: each an object with a role; keys that are null are
// left out; tool calls' arguments as above. kInvalidArgument names the message.
Result<json::Array> normalized_messages(const json::Value& messages);

}  // namespace weir::text
