#include "engine/session.h"

#include <algorithm>

namespace slip {

Session::Session(Engine& engine) : engine_(engine), batch_(engine) {
  tokens_.reserve(size_t(engine.context()));
  if (engine.max_drafts() > 0) draft_passes_.emplace(engine);
  pool_.emplace(engine.cache(), 1, draft_passes_ ? &*draft_passes_ : nullptr);
  const auto started = pool_->start({}, SequencePool::Reuse::no);
  check(started.has_value(), "more sessions than the cache has sequences");
  sequence_ = started->sequence;
}

void Session::clear() {
  pool_->start_over(sequence_);
  tokens_.clear();
  unaccepted_ = unshown_ = 0;
}

Result<int64_t> Session::sync(std::span<const int32_t> ids, const Progress& progress,
                              int64_t remember) {
  SLIP_TRY_STATUS(check_ids(ids, 0));  // a refusal keeps what is there
  const bool continues = !tokens_.empty() && tokens_.size() < ids.size() &&
                         std::equal(tokens_.begin(), tokens_.end(), ids.begin());
  const int64_t reused = continues ? int64_t(tokens_.size()) : go_back(ids);
  const auto total = int64_t(ids.size());
  bool go_on = true;
  const auto feed_up_to = [&](int64_t end) {
    const auto begin = int64_t(tokens_.size());
    Progress of_all;
    if (progress)
      of_all = [&, begin](int64_t done, int64_t) {
        return go_on = progress(begin + done - reused, total - reused);
      };
    return feed(ids.subspan(size_t(begin), size_t(end - begin)), of_all);
  };
  if (remember > reused && remember < total) {
    SLIP_TRY_STATUS(feed_up_to(remember));
    if (!go_on) return error("stopped");
    catch_up();
    pool_->remember({.salt = {}, .tokens = tokens_}, sequence_);
  }
  SLIP_TRY_STATUS(feed_up_to(total));
  return reused;
}

int64_t Session::go_back(std::span<const int32_t> ids) {
  pool_->end(sequence_);
  auto started = pool_->start({.salt = {}, .tokens = ids}, SequencePool::Reuse::yes);
  // Without room for all of them: feed() will say so.
  if (!started) started = pool_->start({}, SequencePool::Reuse::no);
  check(started.has_value(), "no sequence where one has just ended");
  sequence_ = started->sequence;
  tokens_.assign(ids.begin(), ids.begin() + started->length);
  unaccepted_ = unshown_ = 0;
  return started->length;
}

Status Session::check_ids(std::span<const int32_t> ids, int64_t before) const {
  const int64_t vocabulary = engine_.model().info().vocabulary;
  for (const int32_t id : ids)
    if (id < 0 || id >= vocabulary)
      return error("token id ", id, " is outside the vocabulary of ", vocabulary);
  const int64_t length = before + int64_t(ids.size());
  if (length > engine_.context())
    return error("the text has ", length, " tokens, the context holds ", engine_.context(),
                 "; the model takes up to ", engine_.memory().max_context)
        .about("context");
  return {};
}

Status Session::feed(std::span<const int32_t> ids, const Progress& progress) {
  SLIP_TRY_STATUS(check_ids(ids, int64_t(tokens_.size())));
  if (ids.empty()) return {};
  const auto total = int64_t(ids.size());
  const int64_t chunk = engine_.max_rows();
  for (int64_t done = 0; done < total; done += chunk) {
    const int64_t rows = std::min(chunk, total - done);
    const auto part = ids.subspan(size_t(done), size_t(rows));
    SLIP_TRY_STATUS(step(part, done + rows == total ? 1 : 0, Cache::Rows::certain));
    keep(rows);
    if (progress && !progress(done + rows, total) && done + rows < total) return error("stopped");
  }
  wait();
  return {};
}

Status Session::feed_each(std::span<const int32_t> ids, const EachRow& each) {
  SLIP_TRY_STATUS(check_ids(ids, int64_t(tokens_.size())));
  const int64_t chunk = std::min(engine_.max_rows(), engine_.logit_rows());
  for (size_t done = 0; done < ids.size(); done += size_t(chunk)) {
    const auto part = ids.subspan(done, std::min(size_t(chunk), ids.size() - done));
    const auto position = int64_t(tokens_.size()), rows = int64_t(part.size());
    SLIP_TRY_STATUS(step(part, rows, Cache::Rows::certain));
    keep(rows);
    for (int64_t row = 0; row < rows; ++row)
      each(position + row, choice(row).values(), batch_.hidden_row(0, row));
  }
  return {};
}

Status Session::verify(std::span<const int32_t> ids) {
  check(unaccepted_ == 0, "verify() before the last one was accepted");
  SLIP_TRY_STATUS(check_ids(ids, int64_t(tokens_.size())));
  // A single token cannot be rejected, so nothing needs to be recorded.
  const Cache::Rows kind = ids.size() == 1 ? Cache::Rows::certain : Cache::Rows::tentative;
  SLIP_TRY_STATUS(step(ids, int64_t(ids.size()), kind));
  unaccepted_ = int64_t(ids.size());
  wait();
  return {};
}

void Session::wait() { (void)choice(0).peak(); }

void Session::accept(int64_t count) {
  check(count >= 1 && count <= unaccepted_, "accept of ", count, " tokens of ", unaccepted_);
  keep(count);
  unaccepted_ = 0;
}

bool Session::reserve(int64_t tokens) {
  return pool_->reserve(sequence_, int64_t(tokens_.size()) + tokens);
}

DraftPasses& Session::draft_passes() {
  check(can_draft(), "drafts in an engine that does not draft");
  catch_up();
  return *draft_passes_;
}

std::optional<LogitRow> Session::draft(std::span<const int32_t> ids) {
  // The first draft is made at the last position of the session, the next one after it.
  if (!reserve(int64_t(ids.size()) - 1)) return std::nullopt;
  DraftPasses& passes = draft_passes();
  const DraftPasses::Question question{.sequence = sequence_, .id = ids.back()};
  if (ids.size() == 1) {
    passes.first_round({&question, 1});
  } else {
    passes.next_round({&question, 1});
  }
  return passes.logits(0);
}

Status Session::step(std::span<const int32_t> ids, int64_t outputs, Cache::Rows kind) {
  if (!reserve(int64_t(ids.size())))  // asked once more for its words
    return engine_.cache().reserve(sequence_, int64_t(tokens_.size() + ids.size()));
  catch_up();
  batch_.clear();
  batch_.add(sequence_, ids, outputs, kind);
  batch_.run();
  return {};
}

void Session::keep(int64_t rows) {
  const std::span<const int32_t> ids = batch_.ids(0).first(size_t(rows));
  engine_.cache().commit(sequence_, rows);
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  unshown_ = rows;
}

void Session::catch_up() {
  if (draft_passes_ && unshown_ > 0)
    draft_passes_->follow(sequence_, batch_.hidden(0).first(unshown_),
                          batch_.ids(0).first(size_t(unshown_)), DraftPasses::KeepUp::always);
  unshown_ = 0;
}

}  // namespace slip
