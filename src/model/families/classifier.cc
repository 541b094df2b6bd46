// SPDX-License-Identifier: Apache-2.0
// Classification heads. config.json names the class that the weights were saved from ("…ForSequenceClassification"), which is
// what tells such a head from those for tokens or answers under the same names; GGUF files have "cls.output".
#include <algorithm>
#include <charconv>

#include "model/families/families.h"

namespace weir::model {
namespace {

constexpr std::size_t kMaxNames = 65536;

// id2label: {"0": "negative", "1": "positive"}.
void read_names(Plan& plan) {
  Config& c = plan.config;
  std::vector<std::string>& names = plan.traits.classifier.names;
  if (c.gguf()) {
    names = c.texts({nullptr, "classifier.output_labels"}, kMaxNames);
    return;
  }
  const json::Object* labels = c.object("id2label");
  if (!labels) return;
  if (labels->size() > kMaxNames) return c.fail(ErrorCode::kCorrupt, "id2label has {} entries", labels->size());
  names.assign(labels->size(), {});
  std::vector<bool> seen(labels->size(), false);
  for (const auto& [key, value] : *labels) {
    std::size_t index = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), index);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || index >= names.size() || seen[index] || !value.is_string())
      return c.fail(ErrorCode::kCorrupt, "id2label: \"{}\" is not the number of one of {} labels with its name", std::string_view(key),
                    names.size());
    seen[index] = true;
    names[index] = std::string(value.get_string());
  }
}

Pooling gguf_classifier_pooling(Plan& plan) {
  switch (plan.config.size_or({nullptr, "classifier.pooling_type"}, -1, -1, 4)) {
    case 1: return Pooling::kMean;
    case 2: return Pooling::kCls;
    case 3: return Pooling::kLast;
    default: break;
  }
  if (!plan.traits.encoder) return Pooling::kLast;
  return plan.traits.family == "modern-bert" ? Pooling::kMean : Pooling::kCls;
}

void find_gguf_classifier(Plan& plan) {
  if (!plan.tensors.has("cls.output.weight")) return;
  ClassifierPlace place{.out = "cls.output", .pooling = gguf_classifier_pooling(plan)};
  if (plan.tensors.has("cls.weight")) {
    place.dense = "cls";
    place.activation = plan.traits.family == "modern-bert" ? HeadActivation::kGelu : HeadActivation::kTanh;
  }
  if (plan.tensors.has("cls.norm.weight")) place.norm = "cls.norm";
  use_classifier(plan, place);
}

}  // namespace

bool is_sequence_classifier(Plan& plan) {
  const auto classes = plan.config.texts({"architectures"});
  return !plan.config.gguf() && classes.size() == 1 && classes.front().ends_with("ForSequenceClassification");
}

void use_classifier(Plan& plan, const ClassifierPlace& place) {
  plan.names.classifier_dense = place.dense;
  plan.names.classifier_norm = place.norm;
  plan.names.classifier_out = place.out;
  plan.traits.classifier.activation = place.activation;
  plan.traits.classifier.pooling = place.pooling;
  read_names(plan);
}

void find_classifier(Plan& plan) {
  if (!plan.names.classifier_out.empty()) return;  // the family has said
  if (plan.config.gguf()) return find_gguf_classifier(plan);
  if (!is_sequence_classifier(plan)) return;
  if (plan.traits.encoder)
    return plan.config.fail(ErrorCode::kUnsupported, "the classification head of family \"{}\" is not supported", plan.traits.family);
  use_classifier(plan, {.out = "score", .pooling = Pooling::kLast});
}

}  // namespace weir::model
