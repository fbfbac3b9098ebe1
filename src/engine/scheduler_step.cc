// What one step computes, and what comes of it.
#include <algorithm>

#include "engine/scheduler.h"

namespace slip {
namespace {

// The recurrent states of so many sequences do not stay in a processor's caches.
constexpr size_t kManyStates = 8;

// So many rows of prompts may have logits in a step, whoever waits for it: of a large vocabulary,
// each keeps the host busy for a millisecond or two.
constexpr int64_t kMostScored = 32;

// Without text.
TokenEvent event_of(int32_t id, const std::optional<Logprobs>& logprobs, int top) {
  TokenEvent event;
  event.id = id;
  if (!logprobs) return event;
  event.logprob = logprobs->of(id);
  event.top = logprobs->top(top);
  return event;
}

}  // namespace

void Scheduler::compute() {
  const Stopwatch clock;
  ++counts_.steps;
  writes_later_ = !writes_later_;
  std::vector<Job*>& decoding = lists_.decoding;
  decoding.clear();
  for (const auto& job : running_)
    if (job->decodes()) decoding.push_back(job.get());
  draft(decoding);
  const double draft_seconds = clock.seconds();

  std::vector<Part>& decodes = lists_.decodes;
  decodes.clear();
  int64_t decode_rows = 0;
  for (Job* job : decoding) {
    const auto rows = int64_t(job->drafted->step().size());
    decodes.push_back({.job = job, .certain = 1, .outputs = rows});
    decode_rows += rows;
  }
  const int64_t most = engine_.max_rows() - decode_rows;
  const std::span<const Part> prompts =
      prompt_parts(decoding.empty() ? most : std::min(most, budget_.rows()));
  int64_t prompt_rows = 0;
  for (const Part& part : prompts) prompt_rows += part.certain;

  lists_.verified.clear();
  if (cuts_matter()) {
    run_apart(prompts, decodes);
  } else {
    lists_.all.assign(prompts.begin(), prompts.end());
    lists_.all.insert(lists_.all.end(), decodes.begin(), decodes.end());
    run_pass(lists_.all);
  }

  const double seconds = clock.seconds();
  if (prompt_rows == 0) {
    budget_.add_decode_step(seconds);
  } else {
    budget_.add_prompt_step(
        prompt_rows, seconds,
        decoding.empty() ? ChunkBudget::Beside::nobody : ChunkBudget::Beside::others);
  }
  if (!drafting_ || decoding.empty()) return;
  const DraftChooser::Seconds taken{draft_seconds, seconds - draft_seconds};
  drafting_->chooser.end_step(lists_.verified,
                              prompt_rows == 0 ? std::optional(taken) : std::nullopt);
}

void Scheduler::draft(std::span<Job* const> jobs) {
  for (Job* job : jobs) job->drafted->begin(job->tokens.back());
  if (!drafting_ || jobs.empty()) return;
  auto& [passes, chooser] = *drafting_;
  std::vector<DraftChooser::Sequence>& drafting = lists_.drafting;
  drafting.clear();
  for (Job* job : jobs) {
    const auto length = int64_t(job->tokens.size());
    const SequenceId sequence = *job->sequence;
    int64_t limit = job->drafted->useful(job->answer->wanted(), engine_.context() - length);
    if (!job->request.draft || !passes.can_draft(sequence)) limit = 0;
    if (!pool_.reserve(sequence, length + limit)) limit = 0;
    drafting.push_back({sequence, limit, &*job->drafted});
  }
  using Beside = DraftChooser::Beside;
  chooser.draft(passes, drafting, engine_.logit_rows() - int64_t(running_.size()),
                running_.size() > jobs.size() ? Beside::prompts : Beside::nothing);
}

std::span<const Scheduler::Part> Scheduler::prompt_parts(int64_t rows) {
  std::vector<Job*>& prompting = lists_.prompting;
  prompting.clear();
  for (const auto& job : running_)
    if (!job->decodes()) prompting.push_back(job.get());
  // Whose turn is longest ago comes first. Newcomers line up after the others, or a stream of them
  // would keep a long prompt waiting forever.
  std::ranges::sort(prompting, {}, &Job::turn);

  std::vector<Part>&parts = lists_.prompts, &scored = lists_.scored;
  parts.clear();
  scored.clear();
  std::optional<Part> last;
  int64_t outputs = free_logit_rows();
  for (Job* job : prompting) {
    if (rows <= 0) break;
    if (job->scores()) {
      if (outputs == 0) continue;  // it comes first in the next step
      const Part part = part_to_score(*job, std::min(rows, outputs));
      (part.outputs > 0 ? scored : parts).push_back(part);
      outputs -= part.outputs;
      rows -= part.certain;
      job->turn = ++turns_;
      continue;
    }
    Part part{.job = job, .certain = job->next_cut() - job->computed, .outputs = 0};
    if (!cuts_matter()) {
      part.certain = std::min(part.certain, rows);
      // Only one prompt in a step can have logits beside the decode rows. The last token of
      // another waits for the next step.
      if (part.certain == job->pending() && (last || outputs == 0)) --part.certain;
    } else if (job->computed >= job->prompt_length) {
      // Chosen before the request was stopped, so in steps in which a row's bits are its own.
      part.certain = std::min(job->pending() - 1, engine_.invariant_rows());
    }
    part.outputs = part.certain == job->pending() ? 1 : 0;
    rows -= part.certain;
    job->turn = ++turns_;
    if (part.outputs > 0 && !cuts_matter()) {
      last = part;
      --outputs;
    } else {
      parts.push_back(part);
    }
  }
  if (last) parts.push_back(*last);
  parts.insert(parts.end(), scored.begin(), scored.end());
  return parts;
}

// At least one for each prompt: drafts leave a row to every request that runs.
int64_t Scheduler::free_logit_rows() const {
  int64_t rows = engine_.logit_rows();
  for (const Part& part : lists_.decodes) rows -= part.outputs;
  return std::min(rows, kMostScored);
}

Scheduler::Part Scheduler::part_to_score(Job& job, int64_t rows) const {
  // After a stop, what was told before is computed again without logits.
  const bool again = job.computed < job.scored;
  const int64_t end = again ? job.scored : job.prompt_length - 1;
  int64_t certain = std::min({job.next_cut(), end, job.computed + rows}) - job.computed;
  // The same numbers in any company.
  if (cuts_matter()) certain = std::min(certain, engine_.invariant_rows());
  return {.job = &job, .certain = certain, .outputs = again ? 0 : certain};
}

void Scheduler::run_apart(std::span<const Part> prompts, std::span<const Part> decodes) {
  for (const Part& part : prompts) run_pass({&part, 1});
  while (!decodes.empty()) {
    size_t count = 0;
    int64_t rows = 0;
    for (; count < decodes.size(); ++count) {
      rows += decodes[count].outputs;
      if (count > 0 && rows > engine_.invariant_rows()) break;
    }
    run_pass(decodes.first(count));
    decodes = decodes.subspan(count);
  }
}

void Scheduler::run_pass(std::span<const Part> parts) {
  batch_.clear();
  // A row that is recorded leaves the state to be read, not written: its change is made when the
  // next row is computed. Where states come from memory, that saves every second way back.
  const bool write_later = writes_later_ && drafting_ && engine_.backend_memory().on_host() &&
                           parts.size() >= kManyStates;
  for (const Part& part : parts) {
    const Job& job = *part.job;
    std::span<const int32_t> ids = job.drafted->step();
    if (ids.empty())  // in its prompt
      ids = std::span(job.tokens).subspan(size_t(job.computed), size_t(part.certain));
    // A single token cannot be rejected, so nothing needs to be recorded.
    const bool recorded = int64_t(ids.size()) > part.certain || (write_later && ids.size() == 1);
    batch_.add(*job.sequence, ids, part.outputs,
               recorded ? Cache::Rows::tentative : Cache::Rows::certain);
  }
  batch_.run();
  for (size_t i = 0; i < parts.size(); ++i) settle(parts[i], i);
}

void Scheduler::settle(const Part& part, size_t index) {
  Job& job = *part.job;
  const bool in_prompt = job.computed < job.prompt_length, scores = job.scores();
  if (in_prompt)
    tell(job, [&](RequestListener& listener) {
      listener.on_prompt(std::min(job.computed + part.certain, job.prompt_length),
                         job.prompt_length);
    });
  if (scores) tell_scores(part, index);
  const bool chooses = part.outputs > 0 && !scores;
  const int64_t kept = part.certain + (chooses ? choose_tokens(part, index) : 0);
  engine_.cache().commit(*job.sequence, kept);
  job.computed += kept;
  // Where cuts matter, what was computed to score a prompt is of no further use.
  const bool as_cut = !scores || !cuts_matter();
  if (drafting_ && as_cut) follow(part, index, kept);
  if (in_prompt && as_cut && job.at_checkpoint())
    pool_.remember(job.text(job.computed), *job.sequence);
  if (job.scores()) return;
  if (scores) end_scores(job);
  if (job.answer->finish() && !job.summary.failure) finish(job, *job.answer->finish());
}

// Shows the drafter what is part of the sequence now.
void Scheduler::follow(const Part& part, size_t index, int64_t kept) {
  auto& [passes, chooser] = *drafting_;
  const SequenceId sequence = *part.job->sequence;
  // Some models compute hidden states for rows with logits alone.
  if (part.outputs == 0 && !passes.needs_every_row()) return passes.clear(sequence);
  passes.follow(sequence, batch_.hidden(index).first(kept), batch_.ids(index).first(size_t(kept)),
                chooser.keep_up());
}

// The logits of a row are about the token after it.
void Scheduler::tell_scores(const Part& part, size_t index) {
  Job& job = *part.job;
  for (int64_t row = 0; row < part.outputs && !job.cancelled; ++row) {
    const int32_t id = job.tokens[size_t(job.computed + row) + 1];
    const Logprobs logprobs(batch_.logits(index, row).values());
    const TokenEvent event = event_of(id, logprobs, job.request.top_logprobs);
    tell(job, [&](RequestListener& listener) { listener.on_prompt_token(event); });
  }
  job.scored += part.outputs;
}

void Scheduler::end_scores(Job& job) {
  if (job.answer->finish()) {  // nothing else was wanted
    job.first_token = job.last_token = job.clock.seconds();
  } else if (cuts_matter()) {
    // It was cut into small steps. For the answer the prompt is computed like any other, or its
    // tokens would not be those of a request without log probabilities.
    pool_.start_over(*job.sequence);
    job.computed = 0;
  }
}

int64_t Scheduler::choose_tokens(const Part& part, size_t index) {
  Job& job = *part.job;
  DraftedText& drafted = *job.drafted;
  for (bool goes_on = true; goes_on;) {
    const LogitRow logits = batch_.logits(index, drafted.row());
    std::optional<Logprobs> logprobs;
    if (job.request.top_logprobs >= 0) logprobs.emplace(logits.values());
    const Answer::Token token = job.answer->next(logits);
    const Constraint* form = job.request.constraint.get();
    if (form && form->failure()) {
      job.summary.failure = *form->failure();
      job.cancelled = true;
      break;
    }
    if (token.is_part) {
      job.tokens.push_back(token.id);
      deliver(job, token, logprobs);
    } else {
      job.summary.stop_token = event_of(token.id, logprobs, job.request.top_logprobs);
    }
    goes_on = !job.answer->finish() && !job.cancelled && drafted.chose(token.id);
  }
  using After = DraftedText::After;
  const bool ended = job.answer->finish() || job.cancelled;
  const DraftedText::Verified verified = drafted.judge(ended ? After::not_asked : After::chosen);
  lists_.verified.push_back(verified);
  counts_.draft_tokens += verified.drafts;
  counts_.accepted_tokens += verified.right;
  if (verified.drafts > 0) ++counts_.drafts;
  for (size_t i = 0; i < size_t(verified.right); ++i) ++counts_.accepted_at[i];
  return verified.right;
}

void Scheduler::deliver(Job& job, const Answer::Token& token,
                        const std::optional<Logprobs>& logprobs) {
  ++counts_.generated_tokens;
  job.last_token = job.clock.seconds();
  if (job.answer->tokens() == 1) job.first_token = job.last_token;
  TokenEvent event = event_of(token.id, logprobs, job.request.top_logprobs);
  event.text = token.text;
  tell(job, [&](RequestListener& listener) { listener.on_token(event); });
}

void Scheduler::tell(Job& job, FunctionRef<void(RequestListener&)> what) {
  try {
    what(*job.listener);
  } catch (const std::exception& failure) {  // its own affair: the others go on
    job.summary.failure = error("the answer could not be delivered: ", failure.what());
    job.cancelled = true;
  }
}

}  // namespace slip
