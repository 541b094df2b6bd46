// SPDX-License-Identifier: Apache-2.0
#include "serving/model_host.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/file_io.h"
#include "base/sha256.h"
#include "engine/pooling.h"
#include "serving/tool_messages.h"

namespace weir::serving {
namespace {

constexpr std::size_t kVectorQueue = 256;

// What must be equal for the same seed to give the same text.
std::string fingerprint_of(const engine::LoadedModel& loaded) {
  std::string identity = loaded.backend->description() + "\n" + loaded.path.filename().string() + "\n";
  identity += std::to_string(loaded.model->weight_bytes());
  return "fp_" + sha256_of(identity).substr(0, 12);
}

Result<std::unique_ptr<engine::LoadedModel>> load_files(const ModelSpec& spec, const std::filesystem::path& path,
                                                        const ServeOptions& options) {
  WEIR_ASSIGN(auto loaded, engine::load_model(path, options.cpu));
  if (!spec.chat_template.empty()) {
    WEIR_ASSIGN(const std::string source, read_file(spec.chat_template, 4u << 20));
    WEIR_ASSIGN(loaded.chat_template, text::ChatTemplate::compile(source, spec.chat_template));
    loaded.template_note.clear();
  }
  return std::make_unique<engine::LoadedModel>(std::move(loaded));
}

std::string template_source(const engine::LoadedModel& loaded) {
  return loaded.tokenizer && loaded.tokenizer->chat_template ? *loaded.tokenizer->chat_template : std::string();
}

}  // namespace

ModelHost::ModelHost(ModelSpec spec, std::unique_ptr<engine::LoadedModel> loaded)
    : spec_(std::move(spec)), loaded_(std::move(loaded)), prompts_(std::make_unique<PromptMaker>(*loaded_)) {}

ModelHost::~ModelHost() {
  if (worker_) worker_->stop();
  // Work that nobody waits for any longer may still run between the engine's steps and use what goes before the engine does.
  engine_ = nullptr;
  service_.reset();
}

Result<std::shared_ptr<ModelHost>> ModelHost::load(const ModelSpec& spec, const std::filesystem::path& path, const ServeOptions& options,
                                                   OnStep on_step, const std::filesystem::path& draft) {
  WEIR_ASSIGN(auto loaded, load_files(spec, path, options));
  std::shared_ptr<ModelHost> host(new ModelHost(spec, std::move(loaded)));
  if (!host->loaded_->model->traits().encoder) {
    engine::EngineOptions engine_options = serving::engine_options(options, spec);
    engine_options.on_step = std::move(on_step);
    engine_options.tenants_share_prefixes = options.share_prefixes;
    if (!draft.empty()) {
      WEIR_ASSIGN(engine_options.draft, engine::load_model(draft, options.cpu));
    }
    WEIR_ASSIGN(auto engine, engine::Engine::start(*host->loaded_, std::move(engine_options)));
    host->engine_ = engine.get();
    host->context_ = engine->context();
    for (const AdapterSpec& adapter : spec.adapters) WEIR_TRY(engine->adapters().load(adapter.name, adapter.path));
    host->service_ = std::move(engine);
  } else if (!spec.adapters.empty()) {
    return fail(ErrorCode::kUnsupported, "{}: adapters are for models that generate text", spec.name);
  }
  WEIR_TRY(host->set_up());
  return host;
}

Result<std::shared_ptr<ModelHost>> ModelHost::make(const ModelSpec& spec, std::unique_ptr<engine::LoadedModel> loaded,
                                                   std::unique_ptr<engine::CompletionService> service, std::int64_t context) {
  std::shared_ptr<ModelHost> host(new ModelHost(spec, std::move(loaded)));
  host->service_ = std::move(service);
  host->context_ = context;
  WEIR_TRY(host->set_up());
  return host;
}

Status ModelHost::set_up() {
  const auto has_token = [this](std::string_view text) { return loaded_->tokenizer && loaded_->tokenizer->find(text).has_value(); };
  format_ = spec_.output_format.empty() ? api::guess_output_format(template_source(*loaded_), has_token)
                                        : api::find_output_format(spec_.output_format);
  if (format_ == nullptr)
    return fail(ErrorCode::kInvalidArgument, "{}: no output format is called \"{}\"", spec_.name, spec_.output_format);
  fingerprint_ = fingerprint_of(*loaded_);
  bytes_ = loaded_->model->weight_bytes() + (engine_ != nullptr ? engine_->cache_bytes() : 0);
  worker_ = std::make_unique<WorkPool>(1, kVectorQueue);
  return {};
}

std::vector<std::string> ModelHost::capabilities() const {
  std::vector<std::string> all;
  if (service_) {
    all.emplace_back("completion");
    if (loaded_->chat_template) all.emplace_back("chat");
    if (api::has_tools(*format_)) all.emplace_back("tools");
  }
  if (loaded_->model->traits().classifier.labels > 0)
    all.emplace_back("rerank");
  else if (!service_ || engine_ != nullptr)
    all.emplace_back("embedding");
  return all;
}

// The model's own parameters where the request gave none.
void ModelHost::use_defaults(api::GenerationRequest& request) const {
  const sampling::SamplingParams& own = loaded_->defaults;
  if (own.greedy()) return;  // the model's files say nothing of sampling
  sampling::SamplingParams& params = request.options.sampling;
  if (!request.given.temperature) params.temperature = own.temperature;
  if (!request.given.top_k) params.top_k = own.top_k;
  if (!request.given.top_p) params.top_p = own.top_p;
  if (!request.given.min_p) params.min_p = own.min_p;
  if (!request.given.typical_p) params.typical_p = own.typical_p;
  if (!request.given.repetition_penalty) params.repetition_penalty = own.repetition_penalty;
}

api::ApiResult<std::vector<api::AnswerContext::Prompt>> ModelHost::prepare(api::GenerationRequest& request, bool render_only) const {
  if (request.chat && !api::has_tools(*format_)) write_tools_as_text(request);
  auto prompts = prompts_->make(request);
  if (!prompts || render_only) return prompts;
  if (auto status = fit(request, *prompts); !status) return std::unexpected(std::move(status).error());
  use_defaults(request);
  if (request.chat) {
    auto grammar = api::answer_grammar(*format_, request, prompts->front().text, *loaded_->tokenizer);
    if (!grammar) return std::unexpected(std::move(grammar).error());
    if (*grammar) request.options.grammar = std::move(**grammar);
    if (api::needs_special(*format_)) request.options.show_special = true;
  }
  return prompts;
}

// A prompt that is too long is an error, unless the request wants it cut.
api::ApiResult<void> ModelHost::fit(api::GenerationRequest& request, std::vector<api::AnswerContext::Prompt>& prompts) const {
  engine::CompletionRequest& options = request.options;
  for (api::AnswerContext::Prompt& prompt : prompts) {
    if (request.truncate_prompt) {
      const std::int64_t room = std::max<std::int64_t>(1, context_ - std::max<std::int64_t>(1, options.max_tokens));
      const std::int64_t keep = *request.truncate_prompt > 0 ? std::min(*request.truncate_prompt, room) : room;
      const auto size = static_cast<std::int64_t>(prompt.tokens.size());
      prompt.dropped_tokens = std::max<std::int64_t>(0, size - keep);
      prompt.tokens.erase(prompt.tokens.begin(), prompt.tokens.begin() + prompt.dropped_tokens);
    }
    const auto size = static_cast<std::int64_t>(prompt.tokens.size());
    const std::int64_t room = context_ - size;
    const std::int64_t needed = options.prompt_only ? 0 : std::max<std::int64_t>(1, request.max_tokens_given ? options.max_tokens : 1);
    if (needed > room) {
      const std::string_view name = request.input_name();
      return std::unexpected(api::bad_request(std::string(name),
                                              fmt::format("This model's maximum context length is {} tokens. However, you requested {} "
                                                          "tokens ({} in the {}, {} in the answer): shorten "
                                                          "the prompt or ask for fewer tokens.",
                                                          context_, size + needed, size, name, needed),
                                              "context_length_exceeded"));
    }
    // A default is no wish: it gives way where there is less room.
    if (!request.max_tokens_given && options.max_tokens > room) options.max_tokens = room;
  }
  return {};
}

}  // namespace weir::serving
