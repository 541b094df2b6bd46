// SPDX-License-Identifier: Apache-2.0
// One Python literal (text, number, True, None, list, tuple, dict; JSON's true, false, null as well) turned into JSON byte by byte. A
// number or word is written when it ends, all else at once.
#pragma once

#include <string>
#include <string_view>

#include "api/output_json_scanner.h"

namespace weir::api {

class PythonScanner {
 public:
  // Appends to `out` what the byte adds to the JSON text.
  ReadStep step(char c, std::string& out);
  // The text has ended: a number or word that is whole is written.
  bool finish(std::string& out);

 private:
  enum class State { kValue, kFirstItem, kKey, kFirstKey, kColon, kNext, kString, kEscape, kCode, kOctal, kWord };
  ReadStep value(char c, std::string& out);
  ReadStep string(char c, std::string& out);
  ReadStep escape(char c, std::string& out);
  ReadStep code(char c, std::string& out);
  ReadStep next(char c, std::string& out);
  ReadStep close(char c, std::string& out);
  ReadStep after_value();
  bool write_word(std::string& out);

  State state_ = State::kValue;
  std::string open_;    // '{', '[' and '('
  bool comma_ = false;  // to be written before the next item
  bool key_ = false;    // the string is a key
  char quote_ = '"';
  std::string word_;    // number, True, …
  int digits_ = 0;      // of an escape, still wanted
  int width_ = 0;       // of the escape
  unsigned value_ = 0;  // of the escape
};

}  // namespace weir::api
