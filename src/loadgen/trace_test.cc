// SPDX-License-Identifier: Apache-2.0
#include "loadgen/trace.h"

#include <gtest/gtest.h>

#include "base/testing.h"

namespace weir::loadgen {
namespace {

using namespace std::chrono_literals;

TEST(Trace, AzureExcerpt) {
  const auto trace = read_trace(testing::data_path("traces/azure_llm_code_excerpt.csv"));
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->entries.size(), 200u);
  EXPECT_EQ(trace->entries[0].at, 0ns);
  EXPECT_EQ(trace->entries[0].input_tokens, 4808);
  EXPECT_EQ(trace->entries[0].output_tokens, 10);
  EXPECT_EQ(trace->entries[1].at, 52ms);  // 03.9799600 → 04.0319600
  EXPECT_EQ(trace->entries[2].at, 98189us);
}

TEST(Trace, MooncakeExcerptWithPrefixBlocks) {
  const auto trace = read_trace(testing::data_path("traces/mooncake_excerpt.jsonl"));
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->entries.size(), 100u);
  EXPECT_EQ(trace->entries[2].at, 40ms);
  EXPECT_EQ(trace->entries[2].input_tokens, 23769);
  EXPECT_EQ(trace->entries[2].output_tokens, 3);
  EXPECT_EQ(trace->entries[2].prefix_blocks.size(), 47u);  // of 512 tokens, the last one partly filled
  EXPECT_EQ(trace->entries[2].prefix_blocks.front(), 151);
}

TEST(Trace, ScalesTimeAndCuts) {
  const auto trace = *read_trace(testing::data_path("traces/mooncake_excerpt.jsonl"));
  const Trace fast = scaled(trace, 2, 0ns, 0);
  EXPECT_EQ(fast.entries[2].at, 20ms);
  EXPECT_EQ(scaled(trace, 1, 277ms, 0).entries.size(), 3u);
  EXPECT_EQ(scaled(trace, 1, 0ns, 7).entries.size(), 7u);
}

TEST(Trace, TimesCrossMidnightAndYears) {
  const auto trace = parse_trace("TIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-01-01 00:00:00.5,1,2\r\n2023-12-31T23:59:59,3,4\r\n");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->entries[0].input_tokens, 3);  // sorted by time
  EXPECT_EQ(trace->entries[1].at, 1500ms);
}

TEST(Trace, ErrorsNameTheLine) {
  for (const char* bad :
       {"", "\n\n", "TIMESTAMP,a,b\n", "2023-11-16 18:17:03,12\n", "2023-11-16 18:17:03,x,1\n", "2023-13-16 18:17:03,1,1\n",
        "{\"timestamp\": -1, \"input_length\": 1, \"output_length\": 1}\n", "{\"timestamp\": 0}\n", "{\"timestamp\":0,", "{]",
        "{\"timestamp\": 0, \"input_length\": -5, \"output_length\": 1}\n", "2023-11-16 18:17:03,99999999999999,1"})
    EXPECT_FALSE(parse_trace(bad)) << bad;
  const auto second = parse_trace("2023-11-16 18:17:03,1,1\nnonsense,1,1\n");
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("line 2"), std::string::npos) << second.error().message;
}

}  // namespace
}  // namespace weir::loadgen
