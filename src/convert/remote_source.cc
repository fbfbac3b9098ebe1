#include "convert/remote_source.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/index.h"
#include "checkpoint/safetensors.h"
#include "hub/http_reply.h"

namespace slip {
namespace {

// Most headers are smaller, and one request is then enough.
constexpr uint64_t kFirstBytes = 256 << 10;

// As of one on the disk; what a hub lists must not fill the memory.
constexpr uint64_t kLargestIndex = 256 << 20;

}  // namespace

RemoteSource::RemoteSource(RepoId repo, HubSettings settings, TlsContext tls,
                           const std::atomic<bool>& interrupted)
    : repo_(std::move(repo)),
      settings_(std::move(settings)),
      tls_(std::move(tls)),
      stop_(interrupted) {}

Result<std::unique_ptr<RemoteSource>> RemoteSource::open(const RepoId& repo, const HubSettings& hub,
                                                         const std::atomic<bool>& interrupted) {
  SLIP_TRY(TlsContext tls, TlsContext::make(hub.authorities));
  std::unique_ptr<RemoteSource> source(new RemoteSource(repo, hub, std::move(tls), interrupted));
  SLIP_TRY(HubClient client, HubClient::make(source->settings_, source->tls_, source->stop_));
  source->hub_.emplace(std::move(client));
  SLIP_TRY(source->listing_, list_repo(*source->hub_, repo));
  SLIP_TRY_STATUS(source->read_index());
  return source;
}

std::string RemoteSource::origin() const {
  return cat(repo_.full(), " at ", listing_.commit.substr(0, 12));
}

Result<const RemoteFile*> RemoteSource::find_file(const std::string& path) const {
  const auto found = std::find_if(listing_.files.begin(), listing_.files.end(),
                                  [&](const RemoteFile& file) { return file.path == path; });
  if (found == listing_.files.end())
    return error(repo_.full(), ": has no file ", path, ", which its index names");
  return &*found;
}

// Without an index there is one file, whose header says all.
Status RemoteSource::read_index() {
  const std::string index_name(kIndexName);
  const auto index_file =
      std::find_if(listing_.files.begin(), listing_.files.end(),
                   [&](const RemoteFile& file) { return file.path == index_name; });
  if (index_file == listing_.files.end()) {
    const auto is_weights = [](const RemoteFile& file) {
      return file.path.ends_with(".safetensors") && file.path.find('/') == std::string::npos;
    };
    for (const RemoteFile& file : listing_.files)
      if (is_weights(file)) SLIP_TRY_STATUS(read_header(file.path));
    if (places_.empty())
      return error(repo_.full(), ": holds no .safetensors files; expected a published model");
    for (const auto& [name, place] : places_) file_of_[name] = place.file;
  } else {
    if (index_file->size > kLargestIndex)
      return error(repo_.full(), "/", kIndexName, ": has ", index_file->size,
                   " bytes, more than the ", kLargestIndex, " expected here");
    std::vector<std::byte> text(index_file->size);
    SLIP_TRY_STATUS(fetch(*index_file, {0, index_file->size}, text));
    SLIP_TRY(const SafetensorsIndex index,
             parse_index({reinterpret_cast<const char*>(text.data()), text.size()},
                         cat(repo_.full(), "/", kIndexName)));
    for (const IndexEntry& entry : index.entries) file_of_[entry.tensor] = index.files[entry.file];
  }
  for (const auto& [name, file] : file_of_) names_.push_back(name);
  return {};
}

Status RemoteSource::read_header(const std::string& path) {
  if (headers_read_.contains(path)) return {};
  SLIP_TRY(const RemoteFile* file, find_file(path));
  std::vector<std::byte> start(std::min(kFirstBytes, file->size));
  SLIP_TRY_STATUS(fetch(*file, {0, start.size()}, start));
  uint64_t length = 0;
  if (start.size() >= sizeof(length)) std::memcpy(&length, start.data(), sizeof(length));
  const uint64_t needed = std::min(length, kMaxSafetensorsHeader) + sizeof(length);
  if (needed > start.size() && needed <= file->size) {
    const size_t had = start.size();
    start.resize(needed);
    SLIP_TRY_STATUS(fetch(*file, {had, needed}, std::span(start).subspan(had)));
  }
  SLIP_TRY(const SafetensorsHeader header,
           parse_safetensors_header(start, file->size, cat(repo_.full(), "/", path)));
  for (const TensorEntry& entry : header.tensors)
    places_[entry.name] = {path, entry.offset, {entry.name, entry.type, entry.shape, entry.bytes}};
  headers_read_.insert(path);
  return {};
}

Result<std::vector<SourceTensor>> RemoteSource::describe(std::span<const std::string> names) {
  std::vector<SourceTensor> described;
  for (const std::string& name : names) {
    const auto file = file_of_.find(name);
    check(file != file_of_.end(), "RemoteSource::describe of ", name);
    SLIP_TRY_STATUS(read_header(file->second));
    const auto place = places_.find(name);
    if (place == places_.end())
      return error(repo_.full(), "/", file->second, ": has no tensor ", name,
                   ", which the index says is in it");
    described.push_back(place->second.tensor);
  }
  return described;
}

Status RemoteSource::read(const SourceTensor& tensor, std::span<std::byte> into) {
  const auto place = places_.find(tensor.name);
  check(place != places_.end() && place->second.tensor.bytes == into.size(),
        "RemoteSource::read of ", tensor.name);
  SLIP_TRY(const RemoteFile* file, find_file(place->second.file));
  const uint64_t begin = place->second.offset;
  return fetch(*file, {begin, begin + into.size()}, into);
}

HubTrouble RemoteSource::fetch_rest(const RemoteFile& file, FileRange range,
                                    std::span<std::byte> into, size_t& done) {
  range.begin += done;
  const Result<HubReply> reply = hub_->get(file_address(repo_, listing_.commit, file), range);
  if (!reply.ok()) return {reply.failure().message};
  const HttpReplyHead& head = reply.value().head;
  if (head.status != 200 && head.status != 206) return hub_->explain(reply.value(), repo_);
  const bool whole = range.begin == 0 && range.end == file.size;
  if (head.status == 200 && !whole)
    return {"asked for a part, was sent all of it; something on the way does not know ranges",
            false};
  const auto content = ContentRange::parse(head.header("Content-Range"));
  if (head.status == 206 && (!content || content->begin != range.begin ||
                             content->end > range.end || content->total != file.size))
    return {cat("asked for bytes ", range.begin, "-", range.end - 1, ", the answer has \"",
                head.header("Content-Range"), "\"")};
  while (done < into.size()) {
    const auto rest = into.subspan(done);
    const Result<size_t> count = hub_->read({reinterpret_cast<char*>(rest.data()), rest.size()});
    if (!count.ok()) return {count.failure().message};
    if (count.value() == 0) return {"the answer ended early"};
    done += count.value();
  }
  return {};
}

Status RemoteSource::fetch(const RemoteFile& file, FileRange range, std::span<std::byte> into) {
  size_t done = 0;
  for (int failures = 0; done < into.size();) {
    const size_t before = done;
    const HubTrouble trouble = fetch_rest(file, range, into, done);
    if (done == into.size()) break;
    failures = done > before ? 1 : failures + 1;
    if (!trouble.worth_retrying || failures >= settings_.retries.attempts || hub_->stopped())
      return error(repo_.full(), "/", file.path, ": ",
                   hub_->stopped() ? "interrupted" : trouble.message);
    hub_->pause(std::max(trouble.wait_seconds, settings_.retries.wait_seconds(failures)));
  }
  return {};
}

}  // namespace slip
