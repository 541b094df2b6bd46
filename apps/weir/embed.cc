// SPDX-License-Identifier: Apache-2.0
// weir embed: one vector for each text, as JSON lines.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/json.h"
#include "engine/embedding.h"
#include "model_options.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct EmbedVerb {
  ModelOptions model;
  std::vector<std::string> texts;
  std::string prompt_name, pooling;
  std::int64_t dimensions = 0;
  bool cut = false, raw = false;
};

std::vector<engine::TextInput> read_texts(const EmbedVerb& verb) {
  std::vector<engine::TextInput> texts(verb.texts.begin(), verb.texts.end());
  if (!texts.empty()) return texts;
  for (std::string line; std::getline(std::cin, line);) texts.emplace_back(line);
  return texts;
}

Status run(const EmbedVerb& verb) {
  engine::EmbedderOptions options;
  if (!verb.pooling.empty()) {
    options.pooling = model::pooling_by_name(verb.pooling);
    if (!options.pooling)
      return fail(ErrorCode::kInvalidArgument, "--pooling {}: mean, cls, last, max, weightedmean or none", verb.pooling);
  }
  WEIR_ASSIGN(engine::LoadedModel loaded, load(verb.model));
  WEIR_ASSIGN(engine::Embedder embedder, engine::Embedder::create(loaded, options));
  const auto texts = read_texts(verb);
  engine::EmbedRequest request{.inputs = texts};
  request.cut = verb.cut;
  if (verb.dimensions != 0) request.dimensions = verb.dimensions;
  if (verb.raw) request.normalize = false;
  if (!verb.prompt_name.empty()) request.prompt_name = verb.prompt_name;
  WEIR_ASSIGN(const auto vectors, embedder.embed(request));
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    json::Object line{{"index", i}, {"tokens", vectors[i].tokens}, {"cut", vectors[i].cut}};
    line["embedding"] = json::Array(vectors[i].values.begin(), vectors[i].values.end());
    fmt::print("{}\n", boost::json::serialize(line));
  }
  return {};
}

}  // namespace

void add_embed(CLI::App& app, int& exit_status) {
  auto verb = std::make_shared<EmbedVerb>();
  CLI::App* embed = app.add_subcommand("embed", "Turn texts into vectors, one JSON line each");
  add_model_options(*embed, verb->model, "f32");
  embed->add_option("TEXT", verb->texts, "Texts; default: the lines of standard input");
  embed->add_option("--prompt-name", verb->prompt_name, "Put this prompt of the model before each text (\"query\", \"document\", …)");
  embed->add_option("--dimensions", verb->dimensions, "Shorter vectors, where the model was trained for them");
  embed->add_option("--pooling", verb->pooling, "mean, cls, last, max, weightedmean or none; default: what the model's files say");
  embed->add_flag("--truncate", verb->cut, "Cut texts that are too long; else they are an error");
  embed->add_flag("--no-normalize", verb->raw, "Leave the vectors' length as it is");
  embed->footer(
      "Example:\n"
      "  weir embed minilm \"A weir is a low dam.\" \"Cats sleep.\"\n");
  embed->callback([verb, &exit_status] {
    if (auto status = run(*verb); !status) exit_status = report_error(status.error());
  });
}

}  // namespace weir::cli
