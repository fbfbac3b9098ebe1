#include "engine/scheduler.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace slip {
namespace {

// Where the cut of a prompt changes its bits, steps of a prompt have this length; short enough for
// others to wait for.
constexpr int64_t kSegment = 1024;

}  // namespace

int64_t Scheduler::segment_of(const Engine& engine) {
  const int64_t rows = engine.max_rows();
  return engine.invariant_rows() >= rows ? 0 : std::min(rows, kSegment);
}

std::unique_ptr<Scheduler::Drafting> Scheduler::make_drafting(Engine& engine,
                                                              const ServiceOptions& options) {
  const int64_t most = std::min(options.max_drafts, engine.max_drafts());
  if (most <= 0) return nullptr;
  return std::make_unique<Drafting>(
      engine, options.always_draft ? DraftLength::fixed(most) : DraftLength::automatic(most));
}

Scheduler::Scheduler(Engine& engine, const Tokenizer& tokenizer, const ServiceOptions& options)
    : engine_(engine),
      tokenizer_(tokenizer),
      segment_(segment_of(engine)),
      drafting_(make_drafting(engine, options)),
      pool_(engine.cache(), engine.sequences(), drafting_ ? &drafting_->passes : nullptr),
      batch_(engine),
      budget_(options.chunk_seconds) {
  if (drafting_) counts_.accepted_at.resize(size_t(drafting_->chooser.most()));
}

void Scheduler::add(std::unique_ptr<Job> job) {
  counts_.prompt_tokens += job->prompt_length;
  waiting_.push_back(std::move(job));
}

void Scheduler::cancel(RequestId id) {
  for (const auto& job : waiting_)
    if (job->id == id) job->cancelled = true;
  for (const auto& job : running_)
    if (job->id == id) job->cancelled = true;
}

void Scheduler::fail_running(const Error& failure) {
  if (drafting_) drafting_->passes.drop_pass();
  for (const auto& job : running_) {
    if (job->ended) continue;
    job->summary.failure = failure;
    job->request.reuse_prefix = false;  // nobody knows what its sequence holds
    finish(*job, FinishReason::cancelled);
  }
  forget_ended();
}

void Scheduler::end_all() {
  for (const auto& job : running_) job->cancelled = true;
  for (const auto& job : waiting_) job->cancelled = true;
  end_cancelled();
}

void Scheduler::step() {
  end_cancelled();
  admit();
  forget_ended();  // what ended before it began has no sequence
  make_room();
  if (!running_.empty()) compute();
  forget_ended();
}

void Scheduler::end_cancelled() {
  for (const auto& job : waiting_)
    if (job->cancelled) finish(*job, FinishReason::cancelled);
  for (const auto& job : running_)
    if (job->cancelled) finish(*job, FinishReason::cancelled);
  forget_ended();
}

void Scheduler::admit() {
  while (!waiting_.empty()) {
    Job& job = *waiting_.front();
    if (!job.answer) prepare(job);
    if (!job.ended && !start(job)) break;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  // One that was stopped may be older than others that kept running.
  std::ranges::sort(running_, {}, &Job::id);
}

// Before the job has a sequence, so that a failure leaves none behind.
void Scheduler::prepare(Job& job) {
  const int64_t vocabulary = engine_.model().info().vocabulary;
  try {
    Sampler sampler(job.request.sampling, vocabulary,
                    std::min<int64_t>(tokenizer_.vocab_size(), vocabulary));
    sampler.see_prompt(job.tokens);
    job.answer.emplace(AnswerLimits{.room = engine_.context() - job.prompt_length + 1,
                                    .max_tokens = job.request.max_tokens,
                                    .min_tokens = job.request.min_tokens,
                                    .stop_ids = job.request.stop_ids,
                                    .stop_strings = job.request.stop_strings},
                       std::move(sampler), &tokenizer_, job.request.constraint.get());
    job.drafted.emplace(job.answer->sampler(), &job.chances,
                        drafting_ ? drafting_->chooser.most() : 0, job.request.stop_ids,
                        job.request.constraint.get());
  } catch (const std::exception& failure) {
    job.summary.failure = error("the request could not be started: ", failure.what());
    return finish(job, FinishReason::cancelled);
  }
  if (job.answer->finish() && !job.scores()) finish(job, *job.answer->finish());
}

bool Scheduler::start(Job& job) {
  // What is remembered has no logits.
  const bool may_reuse = job.request.reuse_prefix && !job.scores();
  const auto reuse = may_reuse ? SequencePool::Reuse::yes : SequencePool::Reuse::no;
  const auto started = pool_.start(job.text(int64_t(job.tokens.size())), reuse);
  if (!started) return false;
  job.sequence = started->sequence;
  job.computed = started->length;
  const bool was_stopped = job.turn > 0;
  job.turn = ++turns_;
  if (was_stopped) return true;

  job.started = job.clock.seconds();
  job.summary.queue_seconds = job.started;
  job.summary.cached_tokens = started->length;
  counts_.cached_prompt_tokens += started->length;
  return true;
}

void Scheduler::make_room() {
  for (size_t i = 0; i < running_.size(); ++i) {
    Job& job = *running_[i];
    while (job.sequence && !pool_.reserve(*job.sequence, int64_t(job.tokens.size())))
      preempt(*running_.back());
  }
}

void Scheduler::preempt(Job& job) {
  ++counts_.preemptions;
  pool_.end(*job.sequence);
  job.sequence.reset();
  job.computed = 0;
  waiting_.push_front(std::move(running_.back()));
  running_.pop_back();
}

void Scheduler::finish(Job& job, FinishReason reason) {
  RequestSummary& summary = job.summary;
  summary.finish = reason;
  if (job.answer) {
    summary.text = job.answer->rest();
    summary.stop_string = job.answer->stop_string();
    summary.tokens = job.answer->tokens();
  }
  if (job.drafted) summary.drafts = job.drafted->counts();
  if (job.first_token > 0) {
    summary.prompt_seconds = job.first_token - job.started;
    summary.decode_seconds = job.last_token - job.first_token;
  }
  if (job.sequence) {
    // Where a prompt's numbers differ from those of decoded tokens, only prompts are remembered.
    if (job.request.reuse_prefix && !cuts_matter() && job.computed > 0) {
      pool_.end(*job.sequence, job.text(job.computed));
    } else {
      pool_.end(*job.sequence);
    }
    job.sequence.reset();
  }
  job.ended = true;
  try {
    job.listener->on_finish(summary);
  } catch (const std::exception&) {
    // Its own affair: it has heard all there is.
  }
}

void Scheduler::forget_ended() {
  const auto ended = [](const std::unique_ptr<Job>& job) { return job->ended; };
  std::erase_if(running_, ended);
  std::erase_if(waiting_, ended);
}

ServiceStats Scheduler::stats() const {
  ServiceStats stats = counts_;
  stats.running = int64_t(running_.size());
  stats.waiting = int64_t(waiting_.size());
  stats.sequences = engine_.sequences();
  stats.free_sequences = engine_.sequences() - pool_.running();
  return stats;
}

}  // namespace slip
