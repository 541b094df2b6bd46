// SPDX-License-Identifier: Apache-2.0
// A hostile tokenizer.json, then hostile bytes to encode: nothing may crash, hang or break an invariant. The input is the file,
// a byte FF, and the text; without FF the text is the file itself.
#include <cstdint>
#include <cstdlib>

#include "base/log.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir;
  using namespace weir::tokenizer;
  log::set_level(log::Level::kOff);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t border = input.find('\xFF');
  const std::string_view file = input.substr(0, border);
  const std::string_view text = border == std::string_view::npos ? file : input.substr(border + 1);

  const auto tokenizer = Tokenizer::from_json(file, nullptr, nullptr);
  if (!tokenizer) return 0;
  const Tokenizer& t = **tokenizer;
  for (const bool special : {false, true}) {
    const std::vector<TokenId> ids = t.encode(text, {.add_special = special, .parse_special = special});
    for (TokenId id : ids) {
      if (id < 0 || id >= t.vocab_size()) std::abort();
    }
    if (ids != t.encode(text, {.add_special = special, .parse_special = special})) std::abort();
    const std::string decoded = t.decode(ids, special);
    if (valid_utf8_prefix(decoded) != decoded.size()) std::abort();
    StreamDecoder stream(*tokenizer, special);
    std::string streamed;
    for (TokenId id : ids) {
      const std::string part = stream.push(id);
      if (valid_utf8_prefix(part) != part.size()) std::abort();
      streamed += part;
    }
    streamed += stream.finish();
    if (valid_utf8_prefix(streamed) != streamed.size()) std::abort();
  }
  return 0;
}
