// SPDX-License-Identifier: Apache-2.0
// weir show: what is in a model file, and the memory it needs to run.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/units.h"
#include "model/load.h"
#include "model/sequence_memory.h"
#include "store/inspect.h"
#include "store/names.h"
#include "store/resolve.h"
#include "verbs.h"

namespace weir::cli {
namespace {

struct ShowVerb {
  std::string model, kv_type = "bf16";
  std::int64_t context = 0;
  bool tensors = false, json = false;
};

// Weights and what one sequence of `context` tokens adds. An estimate: what the program itself and a step's intermediate
// results need is not in it.
struct MemoryEstimate {
  std::int64_t context = 0, max_context = 0;
  std::uint64_t weights = 0, per_token = 0, state = 0;
  std::uint64_t sequence() const { return per_token * static_cast<std::uint64_t>(context) + state; }
  std::uint64_t total() const { return weights + sequence(); }
};

Result<MemoryEstimate> estimate_memory(const store::ModelDescription& model, const ShowVerb& options) {
  const auto kv_type = dtype_from_name(options.kv_type);
  if (!kv_type) return fail(ErrorCode::kInvalidArgument, "unknown type '{}'", options.kv_type);
  WEIR_ASSIGN(const model::ModelParts parts, model::load_parts(model.path));
  WEIR_TRY(model::SequenceMemory::check_type(parts.traits, *kv_type));
  MemoryEstimate estimate;
  estimate.max_context = parts.traits.max_context;
  estimate.context = options.context > 0 ? options.context : 4096;
  if (options.context == 0 && estimate.max_context > 0) estimate.context = std::min(estimate.context, estimate.max_context);
  estimate.weights = model.file_bytes;
  estimate.per_token = parts.traits.encoder ? 0 : model::SequenceMemory::bytes_per_token(parts.traits, *kv_type);
  estimate.state = model::SequenceMemory::bytes_per_state(parts.traits);
  return estimate;
}

json::Object to_json(const store::ModelDescription& model, const Result<MemoryEstimate>& memory, const ShowVerb& options) {
  json::Object metadata;
  for (const store::MetadataItem& item : model.metadata) metadata[item.key] = item.value;
  json::Array types, tensors;
  for (const formats::TypeTotal& type : model.summary.by_type)
    types.push_back(
        json::Object{{"type", dtype_name(type.type)}, {"tensors", type.tensors}, {"elements", type.elements}, {"bytes", type.bytes}});
  json::Object object{{"path", model.path.string()},
                      {"format", model.format},
                      {"architecture", model.architecture},
                      {"file_bytes", model.file_bytes},
                      {"parameters", model.summary.parameters},
                      {"tensor_count", model.summary.tensors},
                      {"tensor_bytes", model.summary.bytes},
                      {"types", std::move(types)},
                      {"metadata", std::move(metadata)}};
  if (options.tensors) {
    for (const formats::NamedTensor& tensor : model.index.tensors())
      tensors.push_back(json::Object{{"name", tensor.name},
                                     {"type", dtype_name(tensor.view.type)},
                                     {"shape", json::Array(tensor.view.shape.begin(), tensor.view.shape.end())},
                                     {"bytes", tensor.view.bytes.size()}});
    object["tensors"] = std::move(tensors);
  }
  if (memory)
    object["memory_estimate"] =
        json::Object{{"context", memory->context},           {"max_context", memory->max_context},      {"kv_type", options.kv_type},
                     {"weights_bytes", memory->weights},     {"kv_bytes_per_token", memory->per_token}, {"state_bytes", memory->state},
                     {"sequence_bytes", memory->sequence()}, {"total_bytes", memory->total()}};
  else
    object["memory_estimate_error"] = memory.error().message;
  return object;
}

void print_memory(const Result<MemoryEstimate>& memory, const ShowVerb& options) {
  if (!memory) {
    fmt::print("\nMemory: no estimate: {}\n", memory.error().message);
    return;
  }
  fmt::print("\nMemory for {} tokens (an estimate; without the program itself and intermediate results):\n", memory->context);
  fmt::print("  {:<12} {:>9}  mapped from the file\n", "weights", format_bytes(memory->weights));
  if (memory->per_token)
    fmt::print("  {:<12} {:>9}  {} per token as {}\n", "KV cache",
               format_bytes(memory->per_token * static_cast<std::uint64_t>(memory->context)), format_bytes(memory->per_token),
               options.kv_type);
  if (memory->state) fmt::print("  {:<12} {:>9}  per sequence, at any length\n", "state", format_bytes(memory->state));
  fmt::print("  {:<12} {:>9}\n", "together", format_bytes(memory->total()));
  if (memory->max_context > 0 && memory->context > memory->max_context)
    fmt::print("  the model was made for {} tokens at most\n", memory->max_context);
}

void print(const store::ModelDescription& model, const Result<MemoryEstimate>& memory, const ShowVerb& options) {
  fmt::print("{}\n  {}, architecture {}, {} parameters in {} tensors, {}\n", model.path.string(), model.format, model.architecture,
             format_count(static_cast<std::uint64_t>(model.summary.parameters)), model.summary.tensors, format_bytes(model.file_bytes));
  fmt::print("\nMetadata:\n");
  for (const store::MetadataItem& item : model.metadata)
    fmt::print("  {:<42} {:<9} {}\n", store::printable(item.key), item.type, item.text);
  fmt::print("\nTensors by type:\n");
  for (const formats::TypeTotal& type : model.summary.by_type)
    fmt::print("  {:<8} {:>6} tensors {:>8} elements {:>9}\n", dtype_name(type.type), type.tensors,
               format_count(static_cast<std::uint64_t>(type.elements)), format_bytes(type.bytes));
  if (options.tensors) {
    fmt::print("\nTensors:\n");
    for (const formats::NamedTensor& tensor : model.index.tensors())
      fmt::print("  {:<48} {:<8} {:<20} {:>9}\n", store::printable(tensor.name), dtype_name(tensor.view.type),
                 shape_string(tensor.view.shape), format_bytes(tensor.view.bytes.size()));
  }
  print_memory(memory, options);
}

Status show(const ShowVerb& options) {
  WEIR_ASSIGN(const auto path, store::resolve(options.model));
  WEIR_ASSIGN(const store::ModelDescription model, store::inspect_model(path));
  const Result<MemoryEstimate> memory = estimate_memory(model, options);
  if (options.json)
    fmt::print("{}\n", boost::json::serialize(to_json(model, memory, options)));
  else
    print(model, memory, options);
  return {};
}

}  // namespace

void add_show(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("show", "Show what is in a model: metadata, sizes, and the memory it needs");
  const auto o = std::make_shared<ShowVerb>();
  verb.add_option("MODEL", o->model, "A name of `weir list`, a GGUF file, or a Hugging Face folder")->required();
  verb.add_flag("--tensors", o->tensors, "Also every tensor");
  verb.add_option("--context", o->context, "Estimate the memory for this many tokens; default: 4096, or what the model allows")
      ->check(CLI::Range(1, 1 << 30));
  verb.add_option("--kv-type", o->kv_type, "Type of the KV cache in the estimate")->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0"}));
  verb.add_flag("--json", o->json, "Print JSON");
  verb.callback([o, &exit_status] {
    if (Status done = show(*o); !done) exit_status = report_error(done.error());
  });
}

}  // namespace weir::cli
