#include "tokenizer/tokenizer.h"
namespace weir::tokenizer {
Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(std::string_view, const json::Object*, const json::Object*) {
  return fail(ErrorCode::kUnsupported, "tokenizer.json");
}
}  // namespace weir::tokenizer
