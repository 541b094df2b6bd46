// SPDX-License-Identifier: Apache-2.0
// The seam between serving and the dialects: one writer for each request turns deltas into the bytes of that dialect, either piece by
// piece (a stream) or as one document at the end. Writers know no sockets; what they make goes into a Sink.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/generation_request.h"
#include "api/output.h"
#include "tokenizer/tokenizer.h"

namespace weir::api {

enum class Framing { kSse, kJsonLines };  // how a stream's pieces travel

// Takes one event of a stream: SSE's event name may be empty; JSON lines have none.
using Sink = std::function<void(std::string_view data, std::string_view event)>;

// What is known of a request when its answer begins.
struct AnswerContext {
  std::string id;                       // unique, without a prefix: writers add "chatcmpl-", "msg_", …
  std::string model;                    // as the client named it
  std::int64_t created = 0;             // Unix seconds
  std::string system_fingerprint = {};  // model file, kernel table, version: what must be equal for the same seed to give the same text
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer = {};
  struct Prompt {
    std::vector<TokenId> tokens = {};
    std::string text = {};
    std::int64_t dropped_tokens = 0;  // from its beginning, since the request wants what is too long to be cut
  };
  std::vector<Prompt> prompts = {};  // one for each of GenerationRequest's, or the rendered chat
  std::int32_t choices_per_prompt = 1;
};

class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;
  virtual Framing framing() const { return Framing::kSse; }

  // Before the first delta, of a stream and otherwise. Once the model has been given the prompts.
  virtual void begin(const AnswerContext& context, const Sink& sink) = 0;
  // Deltas in order for each choice; a choice's last one has `end`. In a stream, what it makes goes into the sink.
  virtual void add(const ChoiceDelta& delta, const Sink& sink) = 0;
  // All choices have ended. In a stream: usage, [DONE], message_stop, …
  virtual void end(const Usage& usage, const Timings& timings, const Sink& sink) = 0;
  // The whole answer as one document, after end(); only when not streaming. `status` is 200 unless the dialect says otherwise.
  virtual std::string document() = 0;
  // An error before anything was sent (the body of a 4xx/5xx) …
  virtual std::string error_document(const ApiError& error) const = 0;
  // … and in the middle of a stream, as its last event.
  virtual void error_event(const ApiError& error, const Sink& sink) = 0;
};

}  // namespace weir::api
