#include "hub/piece_fetch.h"

#include <algorithm>

#include "base/ascii.h"

namespace slip {
namespace {

// The hub says by which checksum it knows what it is about to send. Other servers' etags are of
// other forms, and say nothing.
bool is_another_file(const HubReply& reply, const RemoteFile& wanted) {
  return reply.linked_etag.size() == wanted.oid.size() && reply.linked_etag != wanted.oid;
}

HubTrouble permanent(std::string message) { return {std::move(message), false, 0}; }

HubTrouble changed_on_the_hub(const std::string& path) {
  return permanent(cat(path, " has changed on the hub since it was listed; run it again"));
}

}  // namespace

PieceFetcher::Outcome PieceFetcher::fetch(const DownloadItem& item, PartialFile& file,
                                          PieceJob& job) {
  Outcome outcome;
  const FileRange wanted{file.begin_of(job.piece) + file.done(job.piece),
                         file.begin_of(job.piece) + file.length_of(job.piece)};
  Result<HubReply> reply =
      hub_.get(item.address, job.whole_file ? std::nullopt : std::optional(wanted));
  if (!reply.ok()) {
    outcome.trouble = HubTrouble{reply.failure().message};
    return outcome;
  }
  const HttpReplyHead& head = reply.value().head;
  if (head.status != 200 && head.status != 206) {
    outcome.trouble = hub_.explain(reply.value(), repo_);
    outcome.trouble->message = cat(item.remote.path, ": ", outcome.trouble->message);
  } else if (is_another_file(reply.value(), item.remote)) {
    outcome.trouble = changed_on_the_hub(item.remote.path);
  } else if (head.status == 206) {
    const auto range = ContentRange::parse(head.header("Content-Range"));
    if (range && range->total != file.size()) {
      outcome.trouble = changed_on_the_hub(item.remote.path);
    } else if (!range || range->begin != wanted.begin || range->end > wanted.end) {
      outcome.trouble =
          HubTrouble{cat(item.remote.path, ": asked for bytes ", wanted.begin, "-", wanted.end - 1,
                         ", the answer has \"", head.header("Content-Range"), "\"")};
    } else {
      receive_piece(file, job, range->end, outcome);
    }
  } else {
    const auto length = parse_decimal(head.header("Content-Length"));
    if (length && *length != file.size()) {
      outcome.trouble = changed_on_the_hub(item.remote.path);
    } else if (queue_.take_whole_file(job)) {
      receive_whole_file(file, job, outcome);
    }
  }
  return outcome;
}

size_t PieceFetcher::fill(uint64_t most, Outcome& outcome) {
  const size_t wanted = size_t(std::min<uint64_t>(most, buffer_.size()));
  size_t filled = 0;
  while (filled < wanted) {
    const Result<size_t> count = hub_.read(std::span(buffer_).subspan(filled, wanted - filled));
    if (!count.ok()) outcome.trouble = HubTrouble{count.failure().message};
    if (!count.ok() || count.value() == 0) break;
    filled += count.value();
  }
  return filled;
}

void PieceFetcher::append(PartialFile& file, size_t piece, std::span<const char> bytes,
                          Outcome& outcome) {
  if (Status written = file.append(piece, bytes); !written.ok()) {
    outcome.trouble = permanent(written.failure().message);
  } else {
    outcome.bytes += bytes.size();
  }
}

void PieceFetcher::receive_piece(PartialFile& file, const PieceJob& job, uint64_t end,
                                 Outcome& outcome) {
  uint64_t at = file.begin_of(job.piece) + file.done(job.piece);
  while (at < end && !outcome.trouble) {
    const size_t count = fill(end - at, outcome);
    if (count == 0 && !outcome.trouble) outcome.trouble = HubTrouble{"an answer ended too early"};
    if (count > 0) append(file, job.piece, std::span(buffer_).first(count), outcome);
    at += count;
  }
}

void PieceFetcher::receive_whole_file(PartialFile& file, const PieceJob& job, Outcome& outcome) {
  std::vector<size_t> also_taken;
  uint64_t at = 0;
  while (at < file.size() && !outcome.trouble) {
    const size_t piece = file.piece_at(at);
    const uint64_t in_piece = at - file.begin_of(piece);
    const size_t count = fill(file.length_of(piece) - in_piece, outcome);
    if (count == 0 && !outcome.trouble) outcome.trouble = HubTrouble{"an answer ended too early"};
    at += count;
    bool ours = piece == job.piece || (!also_taken.empty() && also_taken.back() == piece);
    if (!ours && queue_.also_take(job.file, piece)) {
      also_taken.push_back(piece);
      ours = true;
    }
    // What an earlier attempt brought is passed over.
    const uint64_t done = file.done(piece);
    if (ours && in_piece <= done && done < in_piece + count)
      append(file, piece, std::span(buffer_).first(count).subspan(size_t(done - in_piece)),
             outcome);
  }
  for (const size_t piece : also_taken) queue_.give_back_also(job.file, piece);
}

}  // namespace slip
