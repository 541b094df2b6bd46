// SPDX-License-Identifier: Apache-2.0
// Who answers LoadGen's samples: the engine in process, or a server. An answer has two moments that count, its first token and its end,
// and both are told from one thread for a given sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::mlperf {

struct Asked {
  std::uint64_t id = 0;    // LoadGen's, handed back as it is
  std::size_t sample = 0;  // index in the data set
};

class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // `data` is what LoadGen's accuracy log keeps of it; valid during the call only. Exactly once before finished().
  virtual void first_token(std::uint64_t id, std::string_view data) = 0;
  virtual void finished(std::uint64_t id, std::string_view data, std::int64_t tokens) = 0;
  virtual void failed(std::uint64_t id, bool had_first_token, const std::string& reason) = 0;
};

class AnswerSource {
 public:
  virtual ~AnswerSource() = default;
  virtual const std::string& name() const = 0;
  // Returns at once; every sample ends by finished() or failed(), from any thread. The sink outlives all of them.
  virtual void ask(std::span<const Asked> asked, AnswerSink& sink) = 0;
};

}  // namespace weir::mlperf
