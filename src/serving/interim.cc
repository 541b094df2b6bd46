// SPDX-License-Identifier: Apache-2.0
// Stands in for api::answer_grammar while that is being written.
#include "api/output_format.h"

namespace weir::api {

__attribute__((weak)) ApiResult<std::optional<grammar::GrammarSpec>> answer_grammar(const OutputFormat&, const GenerationRequest& request,
                                                                                    std::string_view, const tokenizer::Tokenizer&) {
  return request.options.grammar;
}

}  // namespace weir::api
