// SPDX-License-Identifier: Apache-2.0
// weir tokenize: text to ids, and the check of tokenizer vectors.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>

#include "base/file_io.h"
#include "base/json.h"
#include "engine/loaded_model.h"
#include "eval/token_cases.h"
#include "store/resolve.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct TokenizeOptions {
  std::string model, text, file, jsonl;
  bool parse_special = false, add_special = false, check = false, json = false, pieces = false;
};

json::Array to_array(std::span<const TokenId> ids) {
  json::Array array;
  for (TokenId id : ids) array.emplace_back(id);
  return array;
}

// One JSON object per input line: its ids, or with --check whether they are those of the vector.
Status run_jsonl(const tokenizer::Tokenizer& tokenizer, const TokenizeOptions& options, int& exit_status) {
  if (options.check) {
    WEIR_ASSIGN(const eval::FileReport report, eval::run_token_cases(tokenizer, options.jsonl, options.parse_special));
    fmt::print("{}", options.json ? boost::json::serialize(to_json(report)) + "\n" : to_text(report));
    exit_status = report.ok ? 0 : kExitFailed;
    return {};
  }
  WEIR_ASSIGN(const std::string content, read_file(options.jsonl));
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = std::string_view(content).substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    WEIR_ASSIGN(const json::Value value, json::parse(line, fmt::format("{}:{}", options.jsonl, line_number)));
    WEIR_ASSIGN(const json::Object* entry, json::as_object(value, "line"));
    WEIR_ASSIGN(const std::string text, json::get_string(*entry, "text"));
    json::Object out;
    if (const json::Value* id = json::find(*entry, "id")) out["id"] = *id;
    out["ids"] = to_array(tokenizer.encode(text, {.add_special = options.add_special, .parse_special = options.parse_special}));
    fmt::print("{}\n", boost::json::serialize(out));
  }
  return {};
}

Result<std::string> input_text(const TokenizeOptions& options) {
  if (!options.file.empty()) return read_file(options.file);
  if (!options.text.empty()) return options.text;
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

Status run_text(const tokenizer::Tokenizer& tokenizer, const TokenizeOptions& options) {
  WEIR_ASSIGN(const std::string text, input_text(options));
  const auto ids = tokenizer.encode(text, {.add_special = options.add_special, .parse_special = options.parse_special});
  if (options.json) {
    fmt::print("{}\n", boost::json::serialize(json::Object{{"ids", to_array(ids)}, {"count", ids.size()}}));
    return {};
  }
  if (options.pieces) {
    for (TokenId id : ids) fmt::print("{:>8}  {}\n", id, boost::json::serialize(json::Value(tokenizer.token_text(id))));
    return {};
  }
  for (std::size_t i = 0; i < ids.size(); ++i) fmt::print("{}{}", i ? " " : "", ids[i]);
  fmt::print("\n");
  return {};
}

Status run(const TokenizeOptions& options, int& exit_status) {
  WEIR_ASSIGN(const auto path, store::resolve(options.model));
  WEIR_ASSIGN(const auto tokenizer, engine::load_tokenizer(path));
  if (!options.jsonl.empty()) return run_jsonl(*tokenizer, options, exit_status);
  if (options.check) return fail(ErrorCode::kInvalidArgument, "--check needs --jsonl FILE with the ids that are expected");
  return run_text(*tokenizer, options);
}

}  // namespace

void add_tokenize(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* verb = app.add_subcommand("tokenize", "Show the token ids of a text, or check tokenizer vectors");
  verb->add_option("MODEL", options->model, "Catalogue name, GGUF file (a vocabulary alone will do), or Hugging Face folder")->required();
  verb->add_option("TEXT", options->text, "The text; default: standard input");
  verb->add_option("-f,--file", options->file, "Read the text from a file");
  verb->add_option("--jsonl", options->jsonl, "JSON lines with a \"text\" each: prints {\"ids\": …} for each");
  verb->add_flag("--check", options->check,
                 "With --jsonl: compare with the lines' ids_plain, ids_special, ids_special_addbos, ids; exit 0 if all are equal");
  verb->add_flag("--parse-special", options->parse_special, "Special tokens written in the text become their ids");
  verb->add_flag("--add-special", options->add_special, "Add BOS, EOS and the like as the model wants them");
  verb->add_flag("--pieces", options->pieces, "One line per token: id and text");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->footer(
      "Examples:\n"
      "  weir tokenize smollm2 \"Hello, world\" --pieces\n"
      "  weir tokenize smollm2 --jsonl vectors.jsonl --check\n");
  verb->callback([options, &exit_status] {
    if (auto status = run(*options, exit_status); !status) exit_status = report_error(status.error());
  });
}

}  // namespace weir::cli
