// Decides which rows of which requests are computed next, and computes them. Belongs to one thread.
//
// Every step has the decode rows of all requests that wait for their next token, and as many rows
// of prompts as those can be made to wait for. Requests start in the order of their arrival; their
// prompts take turns. A prompt whose log probabilities are wanted has fewer rows in a step: each
// has logits. When pages run out, remembered prefixes go first, then the youngest request stops and
// starts over later: what it has chosen so far stays, so that its answer is the same.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "engine/chunk_budget.h"
#include "engine/draft_chooser.h"
#include "engine/job.h"
#include "engine/sequence_pool.h"
#include "engine/service_options.h"
#include "engine/service_stats.h"
#include "engine/step_batch.h"

namespace slip {

class Scheduler {
 public:
  Scheduler(Engine& engine, const Tokenizer& tokenizer, const ServiceOptions& options);

  // Rows of the longest step of a prompt where the cut changes the numbers; 0 where it does not.
  static int64_t segment_of(const Engine& engine);

  void add(std::unique_ptr<Job> job);
  void cancel(RequestId id);
  // Ends all of them.
  void end_all();
  // A step was interrupted: ends all that run, whether they took part in it or not.
  void fail_running(const Error& failure);

  bool idle() const { return running_.empty() && waiting_.empty(); }
  void step();

  // All but pages, which take longer to count.
  ServiceStats stats() const;
  SequencePool::Pages pages() const { return pool_.pages(); }

 private:
  using Jobs = std::vector<std::unique_ptr<Job>>;

  // Rows of one job in a pass: tokens that are certain, drafts after them, and of how many rows
  // the logits are wanted.
  struct Part {
    Job* job;
    int64_t certain;
    int64_t outputs;
  };

  struct Drafting {
    Drafting(Engine& engine, const DraftLength& length)
        : passes(engine), chooser(length, engine.sequences()) {}

    DraftPasses passes;
    DraftChooser chooser;
  };

  // Lists of one step, which keep their memory for the next.
  struct StepLists {
    std::vector<Job*> decoding, prompting;
    std::vector<DraftChooser::Sequence> drafting;  // those that decode
    std::vector<DraftedText::Verified> verified;   // of those, what came of their drafts
    std::vector<Part> prompts, scored, decodes, all;
  };

  static std::unique_ptr<Drafting> make_drafting(Engine& engine, const ServiceOptions& options);

  // scheduler.cc: who takes part.
  void end_cancelled();
  void forget_ended();
  void admit();
  // Makes what the job will choose its tokens with. Ends it when that fails, or none are wanted.
  void prepare(Job& job);
  bool start(Job& job);
  void make_room();
  void preempt(Job& job);
  void finish(Job& job, FinishReason reason);

  // Whether the numbers of a prompt depend on where it is cut into steps.
  bool cuts_matter() const { return segment_ > 0; }

  // scheduler_step.cc: what is computed.
  void compute();
  std::span<const Part> prompt_parts(int64_t rows);
  // Rows of prompts that may have logits beside the decode rows of the step.
  int64_t free_logit_rows() const;
  // The next rows of a prompt whose log probabilities are wanted, at most so many.
  Part part_to_score(Job& job, int64_t rows) const;
  void draft(std::span<Job* const> jobs);
  void run_pass(std::span<const Part> parts);
  // Each prompt by itself, and decode rows in groups that the backend computes exactly.
  void run_apart(std::span<const Part> prompts, std::span<const Part> decodes);
  void settle(const Part& part, size_t index);
  void follow(const Part& part, size_t index, int64_t kept);
  void tell_scores(const Part& part, size_t index);
  void end_scores(Job& job);
  // Chooses tokens as long as there are logits; returns how many drafts were right.
  int64_t choose_tokens(const Part& part, size_t index);
  void deliver(Job& job, const Answer::Token& token, const std::optional<Logprobs>& logprobs);
  // A listener that throws ends its own request and nobody else's.
  static void tell(Job& job, FunctionRef<void(RequestListener&)> what);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  int64_t segment_;
  std::unique_ptr<Drafting> drafting_;  // null: no drafts
  SequencePool pool_;
  StepBatch batch_;
  ChunkBudget budget_;
  std::deque<std::unique_ptr<Job>> waiting_;  // by arrival
  Jobs running_;                              // by arrival
  uint64_t turns_ = 0;                        // of prompts, so far
  bool writes_later_ = false;                 // alternates from step to step
  ServiceStats counts_;
  StepLists lists_;
};

}  // namespace slip
