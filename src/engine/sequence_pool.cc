#include "engine/sequence_pool.h"

#include <algorithm>
#include <utility>

namespace slip {

SequencePool::SequencePool(Cache& cache, int64_t most_running, DraftPasses* drafts)
    : cache_(cache), most_running_(most_running), drafts_(drafts) {}

SequencePool::~SequencePool() {
  while (forget_oldest()) {
  }
  for (const SequenceId sequence : running_) cache_.close(sequence);
}

bool SequencePool::forget_oldest() {
  const std::optional<SequenceId> oldest = index_.take_oldest();
  if (oldest) cache_.close(*oldest);
  return oldest.has_value();
}

std::optional<SequenceId> SequencePool::open() {
  do {
    Result<SequenceId> opened = cache_.open();
    if (opened.ok() && drafts_) drafts_->clear(opened.value());
    if (opened.ok()) return opened.value();
  } while (forget_oldest());
  return std::nullopt;
}

Result<SequenceId> SequencePool::copy(SequenceId from) {
  SLIP_TRY(const SequenceId to, cache_.fork(from, drafts_ ? drafts_->outstanding(from) : 0));
  if (drafts_) drafts_->copy(from, to);
  return to;
}

SequenceId SequencePool::go_on_from(SequenceId found) {
  // It was just used, so the others go first. Left alone, it gives itself.
  do {
    if (Result<SequenceId> copied = copy(found); copied.ok()) return copied.value();
  } while (index_.size() > 1 && forget_oldest());
  return index_.take(found);
}

std::optional<SequencePool::Started> SequencePool::start(const PrefixIndex::Text& text,
                                                         Reuse reuse) {
  if (running() >= most_running_) return std::nullopt;
  const auto length = int64_t(text.tokens.size());
  // Those that run will soon want another page each; to start and be stopped again helps nobody.
  if (running() > 0 && pages_for(length + 1) + running() > pages().free) return std::nullopt;

  std::optional<Started> started;
  if (reuse == Reuse::yes)
    if (const auto found = index_.find(text, length - 1))
      started = {go_on_from(found->sequence), found->length};
  if (!started) {
    const std::optional<SequenceId> opened = open();
    if (!opened) return std::nullopt;
    started = {*opened, 0};
  }
  running_.push_back(started->sequence);
  if (reserve(started->sequence, length)) return started;
  end(started->sequence);
  return std::nullopt;
}

void SequencePool::start_over(SequenceId sequence) {
  cache_.clear(sequence);
  if (drafts_) drafts_->clear(sequence);
}

bool SequencePool::reserve(SequenceId sequence, int64_t positions) {
  while (!cache_.reserve(sequence, positions).ok())
    if (!forget_oldest()) return false;
  return true;
}

void SequencePool::remember(const PrefixIndex::Text& text, SequenceId sequence) {
  if (cache_.sequences() <= most_running_ || index_.contains(text)) return;
  do {
    if (Result<SequenceId> copied = copy(sequence); copied.ok()) {
      index_.add(text, copied.value());
      return;
    }
  } while (forget_oldest());
}

void SequencePool::end(SequenceId sequence) {
  std::erase(running_, sequence);
  cache_.close(sequence);
}

void SequencePool::end(SequenceId sequence, const PrefixIndex::Text& text) {
  if (cache_.sequences() <= most_running_ || !index_.add(text, sequence)) return end(sequence);
  std::erase(running_, sequence);
  cache_.trim(sequence);
}

SequencePool::Pages SequencePool::pages() const {
  std::vector<bool> in_use(size_t(cache_.pages()));
  for (const SequenceId sequence : running_)
    for (const int32_t page : cache_.pages(sequence)) in_use[size_t(page)] = true;
  const int64_t free = cache_.pages() - std::ranges::count(in_use, true);
  return {.all = cache_.pages(), .free = free, .remembered = free - cache_.free_pages()};
}

}  // namespace slip
