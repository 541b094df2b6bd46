// SPDX-License-Identifier: Apache-2.0
// All metric names, with their labels, buckets and help: the contract with dashboards, routers and alerts. A quantity may have several
// names; a test holds the table, so that none changes unnoticed.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace weir::telemetry {

// What is counted. Behind each: its labels, in the order in which MetricRow::labels names them ("engine" is always 0 and comes on top).
enum class Quantity {
  // Histograms by model, recorded.
  kTtft,
  kInterToken,
  kEndToEnd,
  kQueue,
  kPrefill,
  kDecode,
  kInference,
  kTimePerOutput,
  kRequestPrompt,
  kRequestGenerated,
  kRequestCachedShare,
  kRequestMaxTokens,
  kRequestAnswers,
  kStep,
  kStepForward,
  kStepChoosing,
  kStepSequences,
  kStepTokens,
  kLoad,
  // Counters by model, recorded.
  kFinished,      // model, reason
  kFinishedVllm,  // model, reason in vLLM's words
  kRequests,      // model, outcome: "ok", "cancelled", "failed"
  kCancelled,
  kLoads,
  kUnloads,
  kDrafts,
  // By model, from a snapshot.
  kRunning,
  kWaiting,
  kKvUse,
  kKvBlocks,
  kPromptTokens,
  kGeneratedTokens,

  kDraftTokens,
  kAcceptedTokens,
  kForcedTokens,
  kPreemptions,
  kRefused,
  kExpired,
  kFailedSteps,
  kPrefixAsked,
  kPrefixFound,
  kEvicted,
  kEstimatedWait,
  kBusy,
  kModelBytes,
  kModelState,   // model, state
  kCacheConfig,  // model, block size, blocks, prefix cache
  kAdapters,     // the most, running, waiting
  // HTTP.
  kHttpRequests,  // method, route, status
  kHttpTime,      // method, route
  kHttpBytesIn,
  kHttpBytesOut,
  kHttpGone,  // reason
  kConnections,
  kConnectionsAccepted,
  kConnectionsRefused,
  kHttpActive,
  kHttpMalformed,
  kHttpTimeouts,
  kBodyBytes,
  // The server and its process.
  kReloads,  // what, result
  kSpansExported,
  kSpansDropped,
  kLogDropped,
  kResident,
  kVirtual,
  kCpu,
  kStartTime,
  kOpenFds,
  kMaxFds,
};
inline constexpr std::size_t kQuantities = static_cast<std::size_t>(Quantity::kMaxFds) + 1;
inline constexpr std::size_t kModelHistograms = static_cast<std::size_t>(Quantity::kLoad) + 1;

enum class MetricKind { kCounter, kGauge, kHistogram };

struct MetricRow {
  std::string_view name;
  MetricKind kind;
  Quantity quantity;
  std::string_view labels;  // "model_name,engine"
  std::string_view help;
  std::span<const double> buckets = {};  // of histograms
};

std::span<const MetricRow> metric_table();
// All bucket bounds under which a quantity is shown: what its histogram has to tell apart.
std::vector<double> bounds_of(Quantity quantity);

}  // namespace weir::telemetry
