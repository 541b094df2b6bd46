// SPDX-License-Identifier: Apache-2.0
// The templates themselves. All take a leading system message where the format has a place for one: its own turn, or in front
// of the first user message.
#include "text/named_templates.h"

#include <algorithm>
#include <array>

namespace weir::text {
namespace {

constexpr std::string_view kChatml = R"({%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}
)";

// [INST] turns; the system text stands between <<SYS>> marks at the head of the first user turn.
constexpr std::string_view kLlama2 = R"({%- set ns = namespace(system='') -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- set ns.system = '<<SYS>>\n' + message.content + '\n<</SYS>>\n\n' -%}
{%- elif message.role == 'user' -%}
{{ bos_token + '[INST] ' + ns.system + message.content | trim + ' [/INST]' }}
{%- set ns.system = '' -%}
{%- else -%}
{{ ' ' + message.content | trim + ' ' + eos_token }}
{%- endif -%}
{%- endfor -%}
)";

constexpr std::string_view kLlama3 = R"({{- bos_token -}}
{%- for message in messages -%}
{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content | trim + '<|eot_id|>' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif -%}
)";

constexpr std::string_view kMistral = R"({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- set ns.system = message.content + '\n\n' -%}
{%- elif message.role == 'user' -%}
{{ '[INST] ' + ns.system + message.content + ' [/INST]' }}
{%- set ns.system = '' -%}
{%- else -%}
{{ ' ' + message.content + eos_token }}
{%- endif -%}
{%- endfor -%}
)";

constexpr std::string_view kGemma = R"({{- bos_token -}}
{%- set ns = namespace(system='') -%}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{%- set ns.system = message.content | trim + '\n\n' -%}
{%- else -%}
{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' }}
{{- ns.system + message.content | trim + '<end_of_turn>\n' }}
{%- set ns.system = '' -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}
)";

constexpr std::string_view kPhi3 = R"({%- for message in messages -%}
{{ '<|' + message.role + '|>\n' + message.content + '<|end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|assistant|>\n' }}{%- endif -%}
)";

constexpr std::string_view kZephyr = R"({%- for message in messages -%}
{{ '<|' + message.role + '|>\n' + message.content + eos_token + '\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|assistant|>\n' }}{%- endif -%}
)";

// "USER: … ASSISTANT: …" as Vicuna 1.1 was trained.
constexpr std::string_view kVicuna = R"({%- for message in messages -%}
{%- if message.role == 'system' -%}
{{ message.content + '\n\n' }}
{%- elif message.role == 'user' -%}
{{ 'USER: ' + message.content + '\n' }}
{%- else -%}
{{ 'ASSISTANT: ' + message.content + eos_token + '\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'ASSISTANT:' }}{%- endif -%}
)";

constexpr std::string_view kAlpaca = R"({%- for message in messages -%}
{%- if message.role == 'system' -%}
{{ message.content + '\n\n' }}
{%- elif message.role == 'user' -%}
{{ '### Instruction:\n' + message.content + '\n\n' }}
{%- else -%}
{{ '### Response:\n' + message.content + eos_token + '\n\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '### Response:\n' }}{%- endif -%}
)";

constexpr std::string_view kCommandR = R"({{- bos_token -}}
{%- set roles = {'system': 'SYSTEM', 'user': 'USER', 'assistant': 'CHATBOT'} -%}
{%- for message in messages -%}
{{ '<|START_OF_TURN_TOKEN|><|' + roles[message.role] + '_TOKEN|>' + message.content | trim + '<|END_OF_TURN_TOKEN|>' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{%- endif -%}
)";

constexpr std::string_view kDeepseek = R"({{- bos_token -}}
{%- for message in messages -%}
{%- if message.role == 'system' -%}
{{ message.content }}
{%- elif message.role == 'user' -%}
{{ '<｜User｜>' + message.content }}
{%- else -%}
{{ '<｜Assistant｜>' + message.content + '<｜end▁of▁sentence｜>' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<｜Assistant｜>' }}{%- endif -%}
)";

// For base models: the texts, one after another.
constexpr std::string_view kPlain = R"({%- for message in messages -%}
{{ message.content }}{% if not loop.last %}{{ '\n\n' }}{% endif %}
{%- endfor -%}
)";

constexpr std::array kTemplates = {
    NamedTemplate{"chatml", "<|im_start|>role … <|im_end|>: Qwen, SmolLM2, Hermes and many others", kChatml},
    NamedTemplate{"llama2", "[INST] … [/INST] with <<SYS>>: Llama 2", kLlama2},
    NamedTemplate{"llama3", "<|start_header_id|>role<|end_header_id|> … <|eot_id|>: Llama 3", kLlama3},
    NamedTemplate{"mistral", "[INST] … [/INST]: Mistral and Mixtral Instruct", kMistral},
    NamedTemplate{"gemma", "<start_of_turn>role … <end_of_turn>: Gemma", kGemma},
    NamedTemplate{"phi3", "<|role|> … <|end|>: Phi 3", kPhi3},
    NamedTemplate{"zephyr", "<|role|> … and the end token: Zephyr, TinyLlama, StableLM", kZephyr},
    NamedTemplate{"vicuna", "USER: … ASSISTANT: …: Vicuna", kVicuna},
    NamedTemplate{"alpaca", "### Instruction: … ### Response: …: Alpaca", kAlpaca},
    NamedTemplate{"command-r", "<|START_OF_TURN_TOKEN|> … <|END_OF_TURN_TOKEN|>: Cohere Command R", kCommandR},
    NamedTemplate{"deepseek", "<｜User｜> … <｜Assistant｜> …: DeepSeek V3 and R1", kDeepseek},
    NamedTemplate{"plain", "the texts alone, for base models", kPlain},
};

}  // namespace

std::span<const NamedTemplate> named_templates() { return kTemplates; }

const NamedTemplate* find_named_template(std::string_view name) {
  const auto found = std::ranges::find(kTemplates, name, &NamedTemplate::name);
  return found == kTemplates.end() ? nullptr : &*found;
}

std::string named_template_list() {
  std::string list;
  for (const NamedTemplate& each : kTemplates) {
    if (!list.empty()) list += ", ";
    list += each.name;
  }
  return list;
}

}  // namespace weir::text
