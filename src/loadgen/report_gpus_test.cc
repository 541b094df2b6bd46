// SPDX-License-Identifier: Apache-2.0
// Perf Analyzer's four columns, from observations made by hand.
#include "loadgen/report_gpus.h"

#include <gtest/gtest.h>

#include <array>

namespace weir::loadgen {
namespace {

json::Object gauge(const char* source, const char* meaning, const char* uuid, double mean, double max) {
  return {{"source", source}, {"meaning", meaning}, {"labels", json::Object{{"gpu_uuid", uuid}}}, {"mean", mean}, {"max", max}};
}

json::Object seen(json::Array series) { return {{"observations", json::Object{{"series", std::move(series)}}}}; }

TEST(GpuColumns, AreOfEachGpuByTheServersWordFirst) {
  const GpuColumns both =
      gpu_columns(seen({gauge("http://a", "gpu_use", "GPU-1", 0.5, 0.9), gauge("http://a", "gpu_use", "GPU-2", 0.25, 1),
                        gauge("http://a", "gpu_memory_used", "GPU-1", 1, 2048), gauge("machine", "gpu_use", "GPU-1", 0.1, 0.1)}));
  EXPECT_EQ(both.mean_use, "GPU-1:0.5;GPU-2:0.25;");
  EXPECT_EQ(both.most_memory, "GPU-1:2048;");
  EXPECT_EQ(gpu_columns(seen({gauge("machine", "gpu_power", "GPU-1", 41.5, 60)})).mean_watts, "GPU-1:41.5;");
  EXPECT_FALSE(gpu_columns({}).any());
  EXPECT_FALSE(gpu_columns(seen({5, json::Object{{"meaning", 3}}, gauge("x", "waiting", "y", 1, 1)})).any());
}

TEST(GpuColumns, StandBehindTheVerboseOnes) {
  const std::vector<std::pair<RunLabel, Summary>> rows(1);
  const std::array gpus{GpuColumns{"a:1;", "a:2;", "", "a:4;"}};
  const std::string csv = perf_analyzer_csv(rows, true, gpus);
  EXPECT_NE(csv.find("response wait,Avg GPU Utilization,Avg GPU Power Usage,Max GPU Memory Usage,Total GPU Memory\n"), std::string::npos);
  EXPECT_TRUE(csv.ends_with(",a:1;,a:2;,,a:4;\n")) << csv;
  EXPECT_EQ(perf_analyzer_csv(rows, false, gpus), perf_analyzer_csv(rows, false));
  EXPECT_EQ(perf_analyzer_csv(rows, true, {}), perf_analyzer_csv(rows, true));
}

}  // namespace
}  // namespace weir::loadgen
