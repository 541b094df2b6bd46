// SPDX-License-Identifier: Apache-2.0
// weir run: answer a prompt, or chat at the terminal.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <optional>

#include "base/log.h"
#include "base/units.h"
#include "engine/chat.h"
#include "engine/generation.h"
#include "model_options.h"
#include "text/messages.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct RunOptions {
  ModelOptions model;
  std::string prompt, system, kv_type = "auto";
  std::int64_t max_tokens = 0, context = 4096;
  std::optional<std::uint64_t> seed;
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int32_t> top_k;
  std::vector<std::string> stop;
  bool raw = false, json = false, ignore_eos = false, quiet = false;
};

void add_sampling_options(CLI::App& verb, RunOptions& o) {
  verb.add_option("--temperature", o.temperature, "0 = greedy; default: the model's own, else greedy");
  verb.add_option("--top-k", o.top_k, "Sample from the K likeliest tokens; 0 = all");
  verb.add_option("--top-p", o.top_p, "Sample from the smallest set of tokens with this probability");
  verb.add_option("--min-p", o.min_p, "Drop tokens below this share of the likeliest one's probability");
  verb.add_option("--repetition-penalty", o.repetition_penalty, "Divide the logits of tokens already seen by this");
  verb.add_option("--seed", o.seed, "Same seed, same text; default: a new one each time");
  verb.add_option("--stop", o.stop, "End the answer before this text (may be given more than once)")->allow_extra_args(false);
}

sampling::SamplingParams sampling_params(const RunOptions& o, sampling::SamplingParams params) {
  params.temperature = o.temperature.value_or(params.temperature);
  params.top_k = o.top_k.value_or(params.top_k);
  params.top_p = o.top_p.value_or(params.top_p);
  params.min_p = o.min_p.value_or(params.min_p);
  params.repetition_penalty = o.repetition_penalty.value_or(params.repetition_penalty);
  if (o.seed) params.seed = o.seed;
  for (const auto& s : o.stop) params.stop.push_back(s);
  return params;
}

// The ids that the model sees: the chat rendered by its template, or the bare text with --raw.
Result<std::vector<TokenId>> prompt_ids(const engine::LoadedModel& loaded, const RunOptions& options, const text::Messages& messages,
                                        const std::string& raw_text) {
  WEIR_ASSIGN(const tokenizer::Tokenizer* tokenizer, loaded.require_tokenizer());
  if (options.raw) return tokenizer->encode(raw_text, {.add_special = true, .parse_special = false});
  WEIR_ASSIGN(const std::string rendered, engine::render_chat(loaded, messages));
  return engine::encode_rendered(*tokenizer, rendered);
}

double gigabytes_per_second(const engine::LoadedModel& loaded, const engine::GenerationResult& result) {
  return static_cast<double>(loaded.model->active_weight_bytes()) * result.decode_tokens_per_s() / 1e9;
}

json::Object to_json(const engine::LoadedModel& loaded, const engine::GenerationResult& result) {
  json::Array ids;
  for (TokenId id : result.ids) ids.emplace_back(id);
  return {{"model", loaded.path.string()},
          {"text", result.text},
          {"finish_reason", finish_reason_name(result.finish)},
          {"prompt_tokens", result.prompt_tokens},
          {"cached_tokens", result.cached_tokens},
          {"generated_tokens", result.ids.size()},
          {"ids", std::move(ids)},
          {"ttft_s", result.first_token_s},
          {"prefill_tokens_per_s", result.prefill_tokens_per_s()},
          {"decode_tokens_per_s", result.decode_tokens_per_s()},
          {"weight_gb_per_s", gigabytes_per_second(loaded, result)},
          {"kernels", loaded.backend->description()}};
}

void print_stats(const engine::LoadedModel& loaded, const engine::GenerationResult& result) {
  std::fflush(stdout);
  fmt::print(stderr, "[{} prompt tokens", result.prompt_tokens);
  if (result.cached_tokens > 0) fmt::print(stderr, " ({} cached)", result.cached_tokens);
  fmt::print(stderr, ", {} generated, first after {}, prefill {:.0f} tokens/s, decode {:.1f} tokens/s, {:.1f} GB/s of weights, {}]\n",
             result.ids.size(), format_duration(result.first_token_s), result.prefill_tokens_per_s(), result.decode_tokens_per_s(),
             gigabytes_per_second(loaded, result), loaded.backend->description());
}

// Streams one answer to the terminal, or prints it as JSON.
Result<engine::GenerationResult> answer(const engine::LoadedModel& loaded, engine::Generator& generator, const RunOptions& options,
                                        std::vector<TokenId> ids) {
  engine::GenerationRequest request{.prompt = std::move(ids),
                                    .sampling = sampling_params(options, loaded.defaults),
                                    .max_tokens = options.max_tokens,
                                    .ignore_end = options.ignore_eos};
  int write_error = 0;
  WEIR_ASSIGN(engine::GenerationResult result, generator.generate(request, [&](std::string_view text) {
    const bool wrote = options.json || (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0);
    if (!wrote) write_error = errno;
    return wrote && !interrupted();
  }));
  if (write_error) return fail(ErrorCode::kIo, "cannot write the answer: {}", std::strerror(write_error));
  if (options.json) {
    fmt::print("{}\n", boost::json::serialize(to_json(loaded, result)));
  } else if (!result.ids.empty()) {
    fmt::print("\n");
    if (!options.quiet) print_stats(loaded, result);
  }
  return result;
}

void note_template(const engine::LoadedModel& loaded, const RunOptions& options) {
  if (!options.raw && !loaded.template_note.empty()) fmt::print(stderr, "weir: {}\n", log::printable(loaded.template_note));
}

Status run_once(engine::LoadedModel& loaded, engine::Generator& generator, const RunOptions& options, const std::string& prompt,
                int& exit_status) {
  text::Messages messages;
  if (!options.system.empty()) messages.add("system", engine::valid_text(options.system));
  messages.add("user", engine::valid_text(prompt));
  WEIR_ASSIGN(auto ids, prompt_ids(loaded, options, messages, prompt));
  WEIR_ASSIGN(const auto result, answer(loaded, generator, options, std::move(ids)));
  if (result.finish == engine::FinishReason::kCancelled) exit_status = kExitInterrupted;
  return {};
}

// A line from the terminal; false at its end or when Ctrl-C ends the chat.
bool read_line(std::string& line) {
  fmt::print(stderr, "> ");
  std::fflush(stderr);
  if (std::getline(std::cin, line)) return true;
  fmt::print(stderr, "\n");
  return false;
}

Status chat(engine::LoadedModel& loaded, engine::Generator& generator, const RunOptions& options) {
  fmt::print(stderr, "Chat with {}. Ctrl-C stops an answer; Ctrl-D, an empty prompt's Ctrl-C or /bye ends; /new starts afresh.\n",
             loaded.path.filename().string());
  text::Messages messages;
  const auto start = [&] {
    messages = {};
    if (!options.system.empty()) messages.add("system", engine::valid_text(options.system));
  };
  start();
  std::string line;
  while (read_line(line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line == "/bye" || line == "/exit" || line == "/quit") break;
    if (line == "/new") {
      start();
      continue;
    }
    messages.add("user", engine::valid_text(line));
    auto ids = prompt_ids(loaded, options, messages, line);
    auto result =
        ids ? answer(loaded, generator, options, std::move(*ids)) : Result<engine::GenerationResult>(std::unexpected(ids.error()));
    clear_interrupt();
    if (!result) {
      report_error(result.error());
      messages.pop();
      continue;
    }
    messages.add("assistant", result->text);
  }
  return {};
}

Status run(const RunOptions& options, int& exit_status) {
  catch_interrupts();
  WEIR_TRY(sampling::validate(sampling_params(options, {})));
  WEIR_ASSIGN(const auto kv_type, engine::parse_kv_type(options.kv_type));
  WEIR_ASSIGN(engine::LoadedModel loaded, pull_and_load(options.model));
  if (loaded.model->traits().encoder)
    return fail(ErrorCode::kUnsupported, "{} is an encoder: it makes embeddings and cannot answer", loaded.path.string());
  note_template(loaded, options);
  engine::Generator generator(loaded, {.context = options.context, .kv_type = kv_type});
  const bool terminal = ::isatty(STDIN_FILENO);
  if (options.prompt.empty() && terminal) return chat(loaded, generator, options);
  const bool from_input = options.prompt.empty() || options.prompt == "-";
  const std::string prompt = from_input ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : options.prompt;
  if (prompt.empty()) return fail(ErrorCode::kInvalidArgument, "no prompt: give one as an argument or on standard input");
  return run_once(loaded, generator, options, prompt, exit_status);
}

}  // namespace

void add_run(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb =
      app.add_subcommand("run", "Answer a prompt, or chat at the terminal; a model of the catalogue is pulled when it is not here");
  add_model_options(*verb, options->model);
  verb->add_option("PROMPT", options->prompt, "The prompt; '-' or a pipe reads standard input; none at a terminal starts a chat");
  verb->add_option("-s,--system", options->system, "System prompt");
  verb->add_option("-n,--max-tokens", options->max_tokens, "Tokens to generate at most; 0 = until the context is full")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 32));
  verb->add_option("-c,--context", options->context, "Tokens of prompt and answer together")
      ->check(CLI::Range(16, 1 << 24))
      ->capture_default_str();
  verb->add_option("--kv-type", options->kv_type, "Element type of the KV cache: f32, f16, bf16 or q8_0; auto: what suits the processor")
      ->capture_default_str();
  verb->add_flag("--raw", options->raw, "Give the prompt to the model as it is, without its chat template");
  verb->add_flag("--ignore-eos", options->ignore_eos, "Go on after the model ends its answer");
  verb->add_flag("-q,--quiet", options->quiet, "No line with the speed");
  verb->add_flag("--json", options->json, "Print one JSON object instead of streaming");
  add_sampling_options(*verb, *options);
  verb->footer(
      "Examples:\n"
      "  weir run smollm2                                chat\n"
      "  weir run smollm2 \"Why is the sky blue?\"         one answer\n"
      "  weir run model.gguf -s \"Answer in French\" --temperature 0.7 --seed 1 < question.txt\n");
  verb->callback([options, &exit_status] {
    if (auto status = run(*options, exit_status); !status) exit_status = report_error(status.error());
  });
}

}  // namespace weir::cli
