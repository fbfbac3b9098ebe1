// Runs the passes of a model's drafter, each for one or several sequences.
//
// Slot p of an MTP layer joins the hidden state of position p with the token at p + 1 and drafts
// the token at p + 2. It has keys and values of its own, which must hold every slot of a text
// before it can draft. Few outstanding slots are kept until a draft is wanted; many (a prompt) are
// computed at once, or given up when drafts do not pay anyway: with all later drafts of the
// sequence, and of those that go on from a copy of it, as hidden states are not there any more. The
// last hidden state always waits for the token that follows it. A drafter without keys of its own
// (DrafterKeys) needs that state alone, and stays at the last position for all rounds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "models/drafter.h"

namespace slip {

class DraftPasses {
 public:
  // For an engine that drafts.
  explicit DraftPasses(Engine& engine);

  // What it takes of the backend's memory: whatever the number of sequences, for each that may run,
  // and for each that the cache may hold.
  struct Bytes {
    uint64_t fixed, per_running, per_sequence;
  };
  static Bytes bytes(const ModelInfo& info, int64_t max_rows, int64_t max_drafts);

  void clear(SequenceId sequence);
  void copy(SequenceId from, SequenceId to);

  // These tokens, with these hidden states [rows, hidden], are now part of the sequence. May it
  // take a pass of the layer to keep up?
  enum class KeepUp : uint8_t { if_free, always };
  void follow(SequenceId sequence, const View& hidden, std::span<const int32_t> ids,
              KeepUp keep_up);
  bool can_draft(SequenceId sequence) const;
  // Whether a step must have the hidden states of all its rows for follow(), not just the last.
  bool needs_every_row() const { return has_keys_; }

  // Positions at the end of the sequence whose slots are not computed yet.
  int64_t outstanding(SequenceId sequence) const;

  // Drafts after a token of each sequence: first after `id`, which is the sequence's next one for
  // certain, then after the draft that came from question `before` of the last round. The cache
  // has room for all but the last draft.
  struct Question {
    SequenceId sequence;
    int32_t id;
    int64_t before = 0;
  };
  int64_t max_questions() const { return drafter_.max_rows(); }
  void first_round(std::span<const Question> questions) { first_rounds(questions, 1); }
  void next_round(std::span<const Question> questions);

  // Several rounds at once, up to the engine's max_drafts(): each drafts after the most likely
  // token of the one before, and nobody looks at that in between.
  void first_rounds(std::span<const Question> questions, int64_t rounds);
  // Whether that saves time: looking at a draft takes longer than making another.
  bool better_at_once() const { return !memory_.on_host(); }
  // The most likely token of each round, after all of them.
  Peak peak(int64_t round, int64_t question);

  // Forgets a pass that something has interrupted.
  void drop_pass();

  // The answer to a question of the last round, which was one alone, over the vocabulary; valid
  // until the next call.
  LogitRow logits(int64_t question);

 private:
  // Slots next_slot, next_slot + 1, ... miss their keys: `ids` are the tokens of all but the last
  // of them, which is open: it waits for the token to come.
  struct State {
    int64_t next_slot = 0;
    int64_t draft_slot = 0;
    bool open = false;
    bool given_up = false;
    std::vector<int32_t> ids;  // keeps its memory when it is cleared

    void clear();
  };

  State& at(SequenceId sequence) { return states_[size_t(sequence)]; }
  View kept(SequenceId sequence, int64_t first, int64_t count) const;
  void keep(SequenceId sequence, int64_t first, const View& hidden);

  // A pass is put together from hidden states and as many tokens, which are then said to be the
  // slots of a sequence.
  void put(const View& hidden);
  void put(std::span<const int32_t> ids);
  void end_span(SequenceId sequence, int64_t start);
  Span span_of(SequenceId sequence, int64_t start, int64_t first_row, int64_t rows);
  // The slot that drafts after the sequence's last draft.
  int64_t next_slot(SequenceId sequence);
  // Outstanding slots of a sequence, all but the open one, join the pass.
  void add_outstanding(SequenceId sequence);
  // The last rows of the pass answer these.
  void run(std::span<const Question> questions = {}, int64_t rounds = 1);
  // Passes after the first: a row for each question, which takes what the pass before handed on.
  void add_rounds(std::span<const Question> questions, int64_t rounds);

  Engine& engine_;
  Drafter& drafter_;
  Memory& memory_;
  bool has_keys_;              // the drafter has keys of its own
  std::vector<State> states_;  // by sequence
  Tensor kept_;                // [sequences, rows, hidden]: hidden states of outstanding slots

  // One pass, and those that follow from it.
  std::vector<int32_t> ids_;
  std::vector<Span> spans_;
  std::vector<int64_t> outputs_;
  std::vector<int64_t> every_row_;  // 0, 1, ...: the outputs of passes after the first
  std::vector<DraftStep> steps_;
  int64_t rows_ = 0;
  Tensor hidden_;         // [rows, hidden]
  Tensor step_ids_;       // i32 [rows]
  Tensor passed_;         // [running sequences, hidden]: what a draft hands on to the next,
  Tensor passed_ids_;     // i32 [running sequences]: and their most likely tokens
  Logits logits_;         // [running sequences, tokens that can be drafted]
  int64_t answered_ = 0;  // questions of the last round
  Tensor spread_;         // [vocabulary], on the host, when not all tokens can be drafted
};

}  // namespace slip
