// SPDX-License-Identifier: Apache-2.0
#include "text/named_templates.h"

#include <gtest/gtest.h>

#include <map>

#include "text/chat_template.h"
#include "text/messages.h"

namespace weir::text {
namespace {

std::string rendered(std::string_view name, const Messages& messages, bool prompt = true) {
  auto chat = ChatTemplate::named(name);
  if (!chat) return "compile: " + chat.error().message;
  auto text =
      chat->render({{"messages", messages.to_json()}, {"add_generation_prompt", prompt}, {"bos_token", "<s>"}, {"eos_token", "</s>"}});
  return text ? *text : "render: " + text.error().message;
}

Messages conversation() { return Messages().system("Be kind.").user("Hi").assistant("Hello!").user("2+2?"); }

TEST(NamedTemplates, WriteAConversationInTheirFormat) {
  const std::map<std::string, std::string> expected = {
      {"chatml",
       "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
       "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n"},
      {"llama2", "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] 2+2? [/INST]"},
      {"llama3",
       "<s><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n2+2?<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"mistral", "<s>[INST] Be kind.\n\nHi [/INST] Hello!</s>[INST] 2+2? [/INST]"},
      {"gemma",
       "<s><start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n<start_of_turn>user\n2+2?"
       "<end_of_turn>\n<start_of_turn>model\n"},
      {"phi3", "<|system|>\nBe kind.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello!<|end|>\n<|user|>\n2+2?<|end|>\n<|assistant|>\n"},
      {"zephyr", "<|system|>\nBe kind.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello!</s>\n<|user|>\n2+2?</s>\n<|assistant|>\n"},
      {"vicuna", "Be kind.\n\nUSER: Hi\nASSISTANT: Hello!</s>\nUSER: 2+2?\nASSISTANT:"},
      {"alpaca", "Be kind.\n\n### Instruction:\nHi\n\n### Response:\nHello!</s>\n\n### Instruction:\n2+2?\n\n### Response:\n"},
      {"command-r",
       "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Be kind.<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hi<|END_OF_TURN_TOKEN|>"
       "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Hello!<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>2+2?<|END_OF_TURN_TOKEN|>"
       "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
      {"deepseek", "<s>Be kind.<｜User｜>Hi<｜Assistant｜>Hello!<｜end▁of▁sentence｜><｜User｜>2+2?<｜Assistant｜>"},
      {"plain", "Be kind.\n\nHi\n\nHello!\n\n2+2?"},
  };
  for (const NamedTemplate& each : named_templates()) {
    ASSERT_TRUE(expected.contains(std::string(each.name))) << each.name;
    EXPECT_EQ(rendered(each.name, conversation()), expected.at(std::string(each.name))) << each.name;
  }
  EXPECT_EQ(named_templates().size(), expected.size());
}

TEST(NamedTemplates, WithoutThePromptNoAnswerIsOpened) {
  const Messages one = Messages().user("Hi");
  EXPECT_EQ(rendered("chatml", one, false), "<|im_start|>user\nHi<|im_end|>\n");
  EXPECT_EQ(rendered("gemma", one, false), "<s><start_of_turn>user\nHi<end_of_turn>\n");
  EXPECT_EQ(rendered("plain", one, false), "Hi");
}

TEST(NamedTemplates, AnUnknownNameListsTheKnownOnes) {
  auto missing = ChatTemplate::named("llama9");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("chatml, llama2, llama3"), std::string::npos) << missing.error().message;
}

}  // namespace
}  // namespace weir::text
