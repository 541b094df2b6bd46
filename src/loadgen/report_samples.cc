// SPDX-License-Identifier: Apache-2.0
#include "loadgen/report_samples.h"

#include <zlib.h>

#include <array>
#include <memory>

#include "base/file_io.h"
#include "loadgen/distribution.h"

namespace weir::loadgen {
namespace {

constexpr std::size_t kPiece = 256u << 10;

// Bytes to a file, compressed or not.
class Sink {
 public:
  static Result<Sink> create(const std::filesystem::path& path, bool gzip) {
    WEIR_ASSIGN(AtomicFile file, AtomicFile::create(path));
    Sink sink(std::move(file));
    if (gzip) {
      auto stream = std::make_unique<z_stream>();
      if (deflateInit2(stream.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return fail(ErrorCode::kExhausted, "cannot start compressing");
      sink.stream_.reset(stream.release());
    }
    return sink;
  }
  Status write(std::string_view text) {
    pending_ += text;
    return pending_.size() < kPiece ? Status() : flush(false);
  }
  Status finish() {
    WEIR_TRY(flush(true));
    return file_.commit();
  }

 private:
  struct End {
    void operator()(z_stream* stream) const {
      deflateEnd(stream);
      delete stream;
    }
  };
  explicit Sink(AtomicFile file) : file_(std::move(file)) {}

  Status flush(bool last) {
    if (!stream_) {
      WEIR_TRY(file_.write(pending_));
      pending_.clear();
      return {};
    }
    stream_->next_in = reinterpret_cast<Bytef*>(pending_.data());
    stream_->avail_in = static_cast<uInt>(pending_.size());
    std::array<char, 64u << 10> out;
    int state = Z_OK;
    do {
      stream_->next_out = reinterpret_cast<Bytef*>(out.data());
      stream_->avail_out = out.size();
      state = deflate(stream_.get(), last ? Z_FINISH : Z_NO_FLUSH);
      if (state == Z_STREAM_ERROR) return fail(ErrorCode::kInternal, "compressing failed");
      WEIR_TRY(file_.write(std::string_view(out.data(), out.size() - stream_->avail_out)));
    } while (stream_->avail_out == 0 && state != Z_STREAM_END);
    pending_.clear();
    return {};
  }

  AtomicFile file_;
  std::unique_ptr<z_stream, End> stream_;
  std::string pending_;
};

std::string moment(Duration at) { return at == kNever ? std::string() : fmt::format("{:.9f}", to_seconds(at)); }

std::string known(double value) { return value < 0 ? std::string() : fmt::format("{:.9f}", value); }

}  // namespace

Result<SampleKind> SampleKind::of(const std::filesystem::path& path) {
  SampleKind kind;
  std::filesystem::path name = path.filename();
  if (name.extension() == ".gz") {
    kind.gzip = true;
    name = name.stem();
  }
  if (name.extension() == ".csv")
    kind.format = SampleFormat::kCsv;
  else if (name.extension() != ".jsonl")
    return fail(ErrorCode::kInvalidArgument, "'{}': samples are written as .jsonl, .csv, .jsonl.gz or .csv.gz", path.string());
  return kind;
}

std::string_view samples_csv_header() {
  return "level,conversation,turn,outcome,status,scheduled_s,eligible_s,started_s,connected_s,sent_s,first_token_s,last_token_s,done_s,"
         "prompt_tokens,output_tokens,cached_tokens,events,queue_s,prefill_s,decode_s,answer_hash,gaps_s\n";
}

std::string record_csv(const RequestRecord& r, std::size_t level) {
  std::string out = fmt::format("{},{},{},{},{}", level, r.conversation, r.turn, outcome_name(r.outcome), r.status);
  for (const Duration at : {r.scheduled, r.eligible, r.started, r.connected, r.sent, r.first_token, r.last_token, r.done})
    out += "," + moment(at);
  for (const std::int64_t count : {r.prompt_tokens, r.output_tokens, r.cached_tokens}) {
    out += ',';
    if (count >= 0) out += fmt::format("{}", count);
  }
  out += fmt::format(",{},{},{},{},", r.events, known(r.queue_s), known(r.prefill_s), known(r.decode_s));
  if (r.answer_hash != 0) out += fmt::format("{:016x}", r.answer_hash);
  out += ',';
  for (std::size_t i = 0; i < r.gaps.size(); ++i) out += fmt::format("{}{:.9f}", i ? ";" : "", to_seconds(r.gaps[i]));
  return out + '\n';
}

json::Object record_json(const RequestRecord& r, std::size_t level) {
  const auto at = [](Duration time) { return time == kNever ? json::Value(nullptr) : json::Value(to_seconds(time)); };
  const auto count = [](std::int64_t tokens) { return tokens < 0 ? json::Value(nullptr) : json::Value(tokens); };
  const auto seconds = [](double value) { return value < 0 ? json::Value(nullptr) : json::Value(value); };
  json::Array gaps;
  for (const Duration gap : r.gaps) gaps.emplace_back(to_seconds(gap));
  return {{"level", level},
          {"conversation", r.conversation},
          {"turn", r.turn},
          {"outcome", outcome_name(r.outcome)},
          {"status", r.status},
          {"scheduled_s", at(r.scheduled)},
          {"eligible_s", at(r.eligible)},
          {"started_s", at(r.started)},
          {"connected_s", at(r.connected)},
          {"sent_s", at(r.sent)},
          {"first_token_s", at(r.first_token)},
          {"last_token_s", at(r.last_token)},
          {"done_s", at(r.done)},
          {"prompt_tokens", count(r.prompt_tokens)},
          {"output_tokens", count(r.output_tokens)},
          {"cached_tokens", count(r.cached_tokens)},
          {"events", r.events},
          {"queue_s", seconds(r.queue_s)},
          {"prefill_s", seconds(r.prefill_s)},
          {"decode_s", seconds(r.decode_s)},
          {"answer_hash", r.answer_hash ? json::Value(fmt::format("{:016x}", r.answer_hash)) : json::Value(nullptr)},
          {"gaps_s", std::move(gaps)}};
}

Status write_samples(const std::filesystem::path& path, std::span<const RunResult* const> levels) {
  WEIR_ASSIGN(const SampleKind kind, SampleKind::of(path));
  WEIR_ASSIGN(Sink sink, Sink::create(path, kind.gzip));
  if (kind.format == SampleFormat::kCsv) WEIR_TRY(sink.write(samples_csv_header()));
  for (std::size_t level = 0; level < levels.size(); ++level)
    for (const RequestRecord& record : levels[level]->records)
      WEIR_TRY(sink.write(kind.format == SampleFormat::kCsv ? record_csv(record, level)
                                                            : boost::json::serialize(record_json(record, level)) + "\n"));
  return sink.finish();
}

}  // namespace weir::loadgen
