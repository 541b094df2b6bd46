// SPDX-License-Identifier: Apache-2.0
// One response out of bytes that arrive in any pieces, as Beast's parser frames it. Interim responses (1xx) are skipped.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "http/message.h"

namespace weir::http {

class ResponseParser {
 public:
  explicit ResponseParser(bool head_only);  // of HEAD: a length without a body
  ~ResponseParser();

  // Takes bytes from the front of `input`, appends what is body to `body`, and returns how many; the rest has to come again, with more
  // behind it. It never takes a byte beyond the response's last one.
  std::size_t parse(std::string_view input, std::string& body);
  void end();  // the connection's end: completes a body that lasts until then, else a failure

  bool head_done() const { return head_done_; }
  bool done() const { return done_; }
  const std::string& failure() const { return failure_; }  // empty: none
  int status() const;
  Headers& headers();
  bool keep_alive() const;  // once done

 private:
  class Framing;  // Beast
  void reset();

  bool head_only_;
  std::unique_ptr<Framing> framing_;
  std::string failure_;
  bool head_done_ = false, done_ = false;
};

}  // namespace weir::http
