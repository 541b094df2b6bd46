// SPDX-License-Identifier: Apache-2.0
// The one table of model families: which config.json model_type and which GGUF general.architecture belongs to which small
// function that fills a Plan. A family differs from another by what it sets, never by a branch in the forward pass.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/plan.h"

namespace weir::model {

struct Family {
  const char* type;             // model_type of config.json, or nullptr
  const char* architecture;     // general.architecture of GGUF, or nullptr
  void (*fill)(Plan& plan);     // errors go to plan.config
  const char* defaults = "{}";  // JSON: what transformers takes for keys that config.json leaves out
};

std::span<const Family> families();
const Family* find_family_by_type(std::string_view model_type);
const Family* find_family_by_architecture(std::string_view architecture);
// Heads that sort sequences into classes: BERT's family says where its own lies, any decoder's and any GGUF file's is found here.
struct ClassifierPlace {
  const char* dense = "";  // whole names without ".weight"; "" = no such part
  const char* norm = "";
  const char* out = "";
  HeadActivation activation = HeadActivation::kNone;
  Pooling pooling = Pooling::kCls;
};
bool is_sequence_classifier(Plan& plan);  // config.json names such a class
void use_classifier(Plan& plan, const ClassifierPlace& place);
void find_classifier(Plan& plan);  // after the family's own function

std::string known_types();  // "bert, cohere, …", for messages
std::string known_architectures();

// One function for each family, in the file of its group.
void plan_llama(Plan& plan);  // llama.cc
void plan_mistral(Plan& plan);
void plan_mixtral(Plan& plan);
void plan_smollm3(Plan& plan);
void plan_granite(Plan& plan);
void plan_granite_moe(Plan& plan);
void plan_qwen2(Plan& plan);  // qwen.cc
void plan_qwen3(Plan& plan);
void plan_qwen2_moe(Plan& plan);
void plan_qwen3_moe(Plan& plan);
void plan_qwen3_next(Plan& plan);  // qwen_next.cc
void plan_qwen3_5(Plan& plan);
void plan_gemma(Plan& plan);  // gemma.cc
void plan_gemma2(Plan& plan);
void plan_gemma3(Plan& plan);
void plan_phi(Plan& plan);  // phi.cc
void plan_phi3(Plan& plan);
void plan_olmo2(Plan& plan);  // olmo.cc
void plan_olmoe(Plan& plan);
void plan_gpt_oss(Plan& plan);   // gpt_oss.cc
void plan_deepseek(Plan& plan);  // deepseek.cc
void plan_gpt2(Plan& plan);      // classic.cc
void plan_gpt_neox(Plan& plan);
void plan_starcoder2(Plan& plan);
void plan_stablelm(Plan& plan);
void plan_nemotron(Plan& plan);
void plan_falcon(Plan& plan);  // falcon.cc
void plan_bert(Plan& plan);    // bert.cc
void plan_roberta(Plan& plan);
void plan_distilbert(Plan& plan);  // encoders.cc
void plan_nomic_bert(Plan& plan);
void plan_gte(Plan& plan);
void plan_modernbert(Plan& plan);
void plan_cohere(Plan& plan);  // cohere.cc
void plan_cohere2(Plan& plan);
void plan_glm(Plan& plan);  // glm.cc
void plan_glm4(Plan& plan);
void plan_glm4_moe(Plan& plan);
void plan_mamba2(Plan& plan);  // recurrent.cc
void plan_lfm2(Plan& plan);
void plan_lfm2_moe(Plan& plan);

}  // namespace weir::model
