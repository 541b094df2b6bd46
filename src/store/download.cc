// SPDX-License-Identifier: Apache-2.0
#include "store/download.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/units.h"
#include "store/part_file.h"

namespace weir::store {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kWorthOfProgress = 1u << 20;  // after this much, earlier failures are forgotten
constexpr int kMostTries = 1000;                      // whatever the progress

enum class Verdict { kDone, kAgain, kFailed };

class Download {
 public:
  Download(const DownloadRequest& request, const DownloadLimits& limits, const Watcher& watcher, Url url, PartFile part)
      : request_(request), limits_(limits), watcher_(watcher), url_(std::move(url)), part_(std::move(part)) {}

  Result<DownloadedFile> run();

 private:
  Status prepare_resume();
  Status start_over();
  Verdict attempt();
  Verdict judge_status(const ResponseHead& head);
  Status on_head(const ResponseHead& head);
  Status on_body(std::span<const std::byte> bytes);
  Status accept_origin(const ResponseHead& head, std::optional<std::uint64_t> total);
  bool wait_before_retry(milliseconds at_least);
  Result<DownloadedFile> complete();
  std::unexpected<Error> give_up();

  bool is_complete() const { return total_ && part_.size() == *total_; }
  std::string trusted_sha256() const { return request_.sha256.empty() ? part_.origin().server_sha256 : request_.sha256; }
  std::vector<std::string> range_headers() const;
  void report(bool finished = false) {
    watcher_.report({.label = request_.label, .done = part_.size(), .total = total_, .finished = finished});
  }
  template <class... Args>
  std::unexpected<Error> refuse(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    return fail(code, "{}: {}", url_.shown(), fmt::vformat(format, fmt::make_format_args(args...)));
  }

  const DownloadRequest& request_;
  const DownloadLimits& limits_;
  const Watcher& watcher_;
  Url url_;
  PartFile part_;
  std::optional<std::uint64_t> total_;
  bool resumed_ = false;  // some bytes come from an earlier try
  bool restart_ = false;  // the server has another version: drop the part, try again at once
  Error error_;           // of the last attempt
  milliseconds retry_after_{0};
  int failures_ = 0;
  std::uint64_t mark_ = 0;  // size at the last failure that counted as progress
};

// What of the part can be trusted: with a checksum known, all, since the whole is checked in the end; otherwise what had
// reached the disk, and only if the version can be told by its ETag.
Status Download::prepare_resume() {
  total_ = request_.size ? request_.size : part_.origin().total;
  const bool checkable = !trusted_sha256().empty();
  std::uint64_t keep = checkable ? part_.size() : std::min(part_.size(), part_.origin().synced);
  if (!checkable && part_.origin().etag.empty()) keep = 0;
  if (total_ && keep > *total_) keep = 0;
  if (keep != part_.size()) WEIR_TRY(part_.truncate(keep));
  resumed_ = keep > 0;
  return {};
}

Status Download::start_over() {
  WEIR_TRY(part_.truncate(0));
  PartOrigin origin;
  origin.url_sha256 = part_.origin().url_sha256;
  return part_.set_origin(std::move(origin));
}

std::vector<std::string> Download::range_headers() const {
  if (part_.size() == 0) return {};
  std::vector<std::string> headers{fmt::format("Range: bytes={}-", part_.size())};
  if (!part_.origin().etag.empty()) headers.push_back("If-Range: " + part_.origin().etag);
  return headers;
}

Status Download::on_head(const ResponseHead& head) {
  std::optional<std::uint64_t> total = head.content_length;
  if (head.status == 206) {
    const auto& range = head.content_range;
    const bool continues = range && range->first == part_.size() && part_.size() > 0;
    const auto agree = [](const std::string& now, const std::string& before) { return now.empty() || before.empty() || now == before; };
    const bool same = continues && (!range->total || !total_ || *range->total == *total_) && agree(head.etag, part_.origin().etag) &&
                      agree(head.linked_sha256, part_.origin().server_sha256);
    if (!same) {
      restart_ = true;
      return refuse(ErrorCode::kNetwork, "the server continues another version of the file");
    }
    total = range->total;
  } else if (part_.size() > 0) {  // the whole file again: no ranges here, or a new version
    watcher_.note(fmt::format("{}: the server sends it from the start", request_.label));
    WEIR_TRY(start_over());
    resumed_ = false;
    if (!request_.size) total_.reset();
  }
  return accept_origin(head, total);
}

// Everything that can be known before the body is checked before it.
Status Download::accept_origin(const ResponseHead& head, std::optional<std::uint64_t> total) {
  for (const auto& stated : {total, head.linked_size})
    if (stated && request_.size && *stated != *request_.size)
      return refuse(ErrorCode::kCorrupt, "the server's file has {} bytes where the catalogue says {}: it is not the expected file", *stated,
                    *request_.size);
  if (!head.linked_sha256.empty() && !request_.sha256.empty() && head.linked_sha256 != request_.sha256)
    return refuse(ErrorCode::kCorrupt, "the server's file has SHA-256 {} where the catalogue says {}: it is not the expected file",
                  head.linked_sha256, request_.sha256);
  if (total && head.linked_size && *total != *head.linked_size)
    return refuse(ErrorCode::kNetwork, "the server contradicts itself about the file's size");
  if (!total_) total_ = total ? total : head.linked_size;
  if (total_ && *total_ > limits_.max_bytes)
    return refuse(ErrorCode::kExhausted, "{} is more than a model may have", format_bytes(*total_));
  if (!total_ && !head.framed && request_.sha256.empty() && head.linked_sha256.empty())
    return refuse(ErrorCode::kNetwork, "the server does not say how long the file is, so that a broken transfer would go unnoticed");
  if (total_) WEIR_TRY(check_free_space(request_.target.parent_path(), *total_ - std::min(*total_, part_.size())));
  PartOrigin origin = part_.origin();
  origin.etag = head.etag.starts_with("W/") ? "" : head.etag;  // a weak one cannot promise equal bytes (RFC 9110, 13.1.5)
  if (!head.linked_sha256.empty()) origin.server_sha256 = head.linked_sha256;
  origin.total = total_;
  origin.synced = std::min(origin.synced, part_.size());
  WEIR_TRY(part_.set_origin(std::move(origin)));
  report();
  return {};
}

Status Download::on_body(std::span<const std::byte> bytes) {
  const std::uint64_t most = total_.value_or(limits_.max_bytes);
  if (bytes.size() > most - part_.size())
    return refuse(ErrorCode::kCorrupt, "the server sends more than the {} bytes the file should have", most);
  for (std::size_t i = 0, at = part_.size(); i < bytes.size() && at < request_.magic.size(); ++i, ++at)
    if (static_cast<char>(bytes[i]) != request_.magic[at])
      return refuse(ErrorCode::kCorrupt, "what the server sends does not begin with '{}': it is not the kind of file its name says",
                    request_.magic);
  WEIR_TRY(part_.append(bytes));
  report();
  return {};
}

Verdict Download::judge_status(const ResponseHead& head) {
  const auto failed = [&](ErrorCode code, std::string text) {
    if (!head.reason.empty()) text += " (\"" + head.reason + "\")";
    error_ = {code, fmt::format("{}: {}", url_.shown(), text)};
  };
  switch (head.status) {
    case 401:
    case 403:
      failed(ErrorCode::kNetwork,
             fmt::format("the server refuses access ({}){}", head.status,
                         request_.token.empty() ? "; if the model needs an account, accept its licence on its page, create an access "
                                                  "token there and set HF_TOKEN to it"
                                                : "; the token in HF_TOKEN is not enough: accept the model's licence on its page, "
                                                  "or make a token that may read it"));
      return Verdict::kFailed;
    case 404:
    case 410:
      failed(ErrorCode::kNotFound, fmt::format("there is no such file ({}); check the address", head.status));
      return Verdict::kFailed;
    case 416:  // our part does not fit the server's file
      restart_ = part_.size() > 0;
      failed(ErrorCode::kNetwork, "the server rejects the range asked for (416)");
      return restart_ ? Verdict::kAgain : Verdict::kFailed;
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      failed(ErrorCode::kNetwork, fmt::format("the server cannot answer now ({})", head.status));
      retry_after_ = head.retry_after.value_or(std::chrono::seconds(0));
      return Verdict::kAgain;
    default: failed(ErrorCode::kNetwork, fmt::format("the server answers with status {}", head.status)); return Verdict::kFailed;
  }
}

Verdict Download::attempt() {
  restart_ = false;
  retry_after_ = milliseconds(0);
  const HttpRequest request{.url = url_,
                            .token = request_.token,
                            .allow_http = request_.allow_http,
                            .headers = range_headers(),
                            .timeouts = limits_.timeouts,
                            .should_stop = watcher_.should_stop};
  const HttpOutcome outcome = http_get(
      request, {[&](const ResponseHead& head) { return on_head(head); }, [&](std::span<const std::byte> bytes) { return on_body(bytes); }});
  if (outcome.error) {
    error_ = *outcome.error;
    if (outcome.head.status == 0) ++failures_;  // nobody answered: not worth as many tries as a transfer that broke
    return outcome.retriable || restart_ ? Verdict::kAgain : Verdict::kFailed;
  }
  if (outcome.head.status != 200 && outcome.head.status != 206) return judge_status(outcome.head);
  if (!total_ || part_.size() == *total_) return Verdict::kDone;
  error_ = {ErrorCode::kNetwork, fmt::format("{}: only {} of {} bytes came", url_.shown(), part_.size(), *total_)};
  return Verdict::kAgain;
}

bool Download::wait_before_retry(milliseconds at_least) {
  const int doublings = std::min(failures_ - 1, 10);
  const milliseconds wait = std::max(at_least, std::min(limits_.longest_backoff, limits_.first_backoff * (1 << doublings)));
  watcher_.note(fmt::format("{}; trying again in {:.0f} s", error_.message, std::chrono::duration<double>(wait).count()));
  if (limits_.sleep) {
    limits_.sleep(wait);
    return !watcher_.stop();
  }
  for (milliseconds waited{0}; waited < wait && !watcher_.stop(); waited += milliseconds(100))
    std::this_thread::sleep_for(milliseconds(100));
  return !watcher_.stop();
}

Result<DownloadedFile> Download::complete() {
  WEIR_ASSIGN(const std::string sha256, part_.sha256());
  const std::string wanted = trusted_sha256();
  if (!wanted.empty() && sha256 != wanted)
    return refuse(ErrorCode::kCorrupt, "what came has SHA-256 {} where the {} says {}; it was thrown away", sha256,
                  request_.sha256.empty() ? "server" : "catalogue", wanted);
  DownloadedFile file{.size = part_.size(), .sha256 = sha256, .verified_by = VerifiedBy::kNobody};
  if (!wanted.empty()) file.verified_by = request_.sha256.empty() ? VerifiedBy::kServer : VerifiedBy::kCatalogue;
  WEIR_TRY(part_.finish());
  report(true);
  return file;
}

// Leaves a part that can be continued, but not an empty one.
std::unexpected<Error> Download::give_up() {
  if (part_.size() == 0) part_.discard();
  return std::unexpected(error_);
}

Result<DownloadedFile> Download::run() {
  bool checked_afresh = false;
  for (int tries = 0; tries < kMostTries; ++tries) {
    WEIR_TRY(prepare_resume());
    if (tries == 0) mark_ = part_.size();
    // A part that is whole already needs no network, unless nothing can vouch for it.
    const Verdict verdict = is_complete() && part_.size() > 0 && !trusted_sha256().empty() ? Verdict::kDone : attempt();
    if (verdict == Verdict::kDone) {
      Result<DownloadedFile> file = complete();
      if (file || file.error().code != ErrorCode::kCorrupt) return file;
      if (!resumed_ || checked_afresh) {
        part_.discard();
        return file;
      }
      checked_afresh = true;  // the earlier part may have been the damaged one
      watcher_.note(fmt::format("{}: the continued file fails its check; loading it afresh", request_.label));
      WEIR_TRY(start_over());
      continue;
    }
    (void)part_.park();  // best effort: the transfer's own error is the one to tell
    if (verdict == Verdict::kFailed) return give_up();
    if (restart_) {
      WEIR_TRY(start_over());
      mark_ = 0;
    }
    failures_ = part_.size() >= mark_ + kWorthOfProgress ? 1 : failures_ + 1;
    mark_ = std::max(mark_, part_.size());
    if (failures_ > limits_.retries) {
      error_.message += fmt::format(" (after {} tries; repeat the command to continue)", tries + 1);
      return give_up();
    }
    if (!wait_before_retry(restart_ ? milliseconds(0) : retry_after_)) {
      error_ = {ErrorCode::kCancelled, url_.shown() + ": stopped; repeat the command to continue"};
      return give_up();
    }
  }
  return give_up();
}

}  // namespace

Status check_free_space(const std::filesystem::path& folder, std::uint64_t bytes) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0)
    return fail(ErrorCode::kIo, "cannot ask for the free space of {}: {}", folder.string(), std::strerror(errno));
  const std::uint64_t free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  if (bytes <= free) return {};
  return fail(ErrorCode::kExhausted, "{} needs {} more but its disk has only {} free; free some, or set WEIR_HOME to another disk",
              folder.string(), format_bytes(bytes), format_bytes(free));
}

Result<DownloadedFile> download(const DownloadRequest& request, const DownloadLimits& limits, const Watcher& watcher) {
  WEIR_ASSIGN(Url url, Url::parse(request.url));
  WEIR_TRY(check_transport(url, request.allow_http));
  WEIR_ASSIGN(PartFile part, PartFile::open(request.target, sha256_of(request.url)));
  return Download(request, limits, watcher, std::move(url), std::move(part)).run();
}

}  // namespace weir::store
