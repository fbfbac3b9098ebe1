// One sequence of tokens in the engine.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft_passes.h"
#include "engine/sequence_pool.h"
#include "engine/step_batch.h"

namespace slip {

// Sessions of one engine take turns, answer by answer: a step overwrites what the last one left for
// others to read. They are not meant for several threads.
class Session {
 public:
  explicit Session(Engine& engine);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Engine& engine() { return engine_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }

  // Called after every chunk of a long prompt; false stops.
  using Progress = std::function<bool(int64_t done, int64_t total)>;

  // Makes the session hold exactly `ids`: continues if it holds a beginning of them, goes back to
  // the longest that it remembers otherwise. Returns how many tokens did not have to be computed.
  // The first `remember` of them are remembered, as far as the engine has checkpoints: another text
  // may begin with them.
  Result<int64_t> sync(std::span<const int32_t> ids, const Progress& progress = {},
                       int64_t remember = 0);

  // Appends tokens; logits() are then those of the last one, and can be read: a GPU has finished.
  // One token allocates nothing.
  Status feed(std::span<const int32_t> ids, const Progress& progress = {});

  // Appends tokens and hands out the logits (and, with MTP, the hidden state) of each.
  using EachRow =
      std::function<void(int64_t position, std::span<float> logits, std::span<const float> hidden)>;
  Status feed_each(std::span<const int32_t> ids, const EachRow& each);

  // Computes tokens of which only the first is certain, with logits for each, in one pass. They are
  // not part of the session until accept() says how many are. At most max_drafts() + 1.
  Status verify(std::span<const int32_t> ids);
  void accept(int64_t count);
  // Tokens of the last verify() that wait for it.
  int64_t unaccepted() const { return unaccepted_; }

  // Of the last token fed, or of token `row` of the last verify().
  LogitRow choice() { return choice(batch_.outputs() - 1); }
  LogitRow choice(int64_t row) { return batch_.logits(0, row); }
  std::span<float> logits() { return choice().values(); }

  // Whether the engine drafts.
  bool can_draft() const { return draft_passes_.has_value(); }
  // Drafts the token after `ids`: its logits over the vocabulary. The first of `ids` is what the
  // session will be given next for certain, the others were drafted before, one after the other.
  // Nothing when the cache has no room.
  std::optional<LogitRow> draft(std::span<const int32_t> ids);
  // What drafts, after it was shown all tokens of the session.
  DraftPasses& draft_passes();

  // Holds nothing then. What it remembers stays, until a step needs its memory.
  void clear();

  // Where its memory lies; another after a sync() that went back.
  SequenceId sequence() const { return sequence_; }

  // How many more tokens fit.
  int64_t room() const { return engine_.context() - int64_t(tokens_.size()); }
  // Takes pages of the cache for so many of them; false when there are none left.
  bool reserve(int64_t tokens);

 private:
  // The longest remembered beginning of `ids` instead of what is there. Returns its length.
  int64_t go_back(std::span<const int32_t> ids);
  // One step over at most max_rows ids, with logits for the last `outputs` rows.
  Status step(std::span<const int32_t> ids, int64_t outputs, Cache::Rows kind);
  // Returns when the last step is done, so that a caller's clock includes it.
  void wait();
  // Makes the first rows of the last step part of the session.
  void keep(int64_t rows);
  // Shows them to the drafter: as late as possible, for it may take a pass, and nobody should wait
  // for the first token of an answer because of drafts after it.
  void catch_up();
  // Whether `ids` may follow `before` tokens.
  Status check_ids(std::span<const int32_t> ids, int64_t before) const;

  Engine& engine_;
  SequenceId sequence_{};
  std::vector<int32_t> tokens_;
  StepBatch batch_;         // the last step
  int64_t unaccepted_ = 0;  // rows of the last verify(), until accept()
  int64_t unshown_ = 0;     // rows of the last step that are kept, until catch_up()
  std::optional<DraftPasses> draft_passes_;
  std::optional<SequencePool> pool_;  // of the one that runs and those remembered
};

}  // namespace slip
