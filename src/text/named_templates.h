// SPDX-License-Identifier: Apache-2.0
// Built-in chat templates, as data: what a model without one of its own can be told to use. Each follows the format that its
// family's model cards describe.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir::text {

struct NamedTemplate {
  std::string_view name;
  std::string_view summary;  // one line, for people
  std::string_view source;   // Jinja; reads messages, add_generation_prompt and, where the format has them, bos_token, eos_token
};

std::span<const NamedTemplate> named_templates();
const NamedTemplate* find_named_template(std::string_view name);
std::string named_template_list();  // "chatml, llama2, …"

}  // namespace weir::text
