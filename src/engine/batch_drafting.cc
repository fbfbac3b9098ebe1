#include "engine/batch_drafting.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"

namespace slip {
namespace {

// Of so many requests one drafts when it is only to learn what that costs, those first that have
// let the fewest slots pass: these have to be computed before.
constexpr size_t kCuriousShare = 8;

// So many requests, where drafts have not paid, take every fourth occasion: the slots that a few
// have let pass, the drafts and the longer verification cost nearly as much as a step.
constexpr size_t kCrowd = 8;
constexpr int64_t kCrowdPatience = 4;

}  // namespace

BatchDrafting::BatchDrafting(Engine& engine, int64_t most, bool always)
    : drafter_(engine), most_(most), always_(always) {}

DraftCosts& BatchDrafting::costs_for(size_t jobs) {
  return costs_[std::min(size_t(std::bit_width(jobs)), costs_.size() - 1)];
}

bool BatchDrafting::wants_another(const Walk& walk) const {
  const Job& job = *walk.job;
  if (int64_t(job.drafts.size()) >= walk.limit) return false;
  return always_ || slip::wants_another(job.chances, *current_);
}

bool BatchDrafting::take(Walk& walk, const Sampler::Proposal& proposal) {
  Job& job = *walk.job;
  job.chances.drafted(proposal.margin);
  if (!always_ && !worth_verifying(job.chances, *current_)) return false;
  // Nothing comes after a stop token, and what the grammar forbids will not be chosen.
  if (std::ranges::find(job.request.stop_ids, proposal.id) != job.request.stop_ids.end())
    return false;
  if (walk.ahead) {
    if (!walk.ahead->free() && !walk.ahead->allows(proposal.id)) return false;
    walk.ahead->advance(proposal.id);
  }
  job.drafts.push_back(proposal.id);
  return true;
}

void BatchDrafting::follow(const Job& job, const View& hidden, std::span<const int32_t> ids) {
  using KeepUp = BatchDrafter::KeepUp;
  const bool pays = always_ || !current_->idle();
  drafter_.follow(*job.sequence, hidden, ids, pays ? KeepUp::always : KeepUp::if_free);
}

void BatchDrafting::keep_curious(size_t jobs, Beside beside) {
  const bool patient =
      jobs >= kCrowd && current_->idle() && ++crowd_occasions_ % kCrowdPatience != 0;
  // Times of steps with prompts are not believed, so they teach nothing.
  if (patient || beside == Beside::prompts) return walks_.clear();
  std::ranges::sort(walks_, {},
                    [&](const Walk& walk) { return drafter_.outstanding(*walk.job->sequence); });
  walks_.resize(std::min(walks_.size(), (jobs + kCuriousShare - 1) / kCuriousShare));
}

void BatchDrafting::draft(std::span<Job* const> jobs, std::span<const int64_t> limits, int64_t rows,
                          Beside beside) {
  const Stopwatch clock;
  outcome_ = {};
  possible_ = false;
  current_ = &costs_for(jobs.size());
  walks_.clear();
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job& job = *jobs[i];
    job.drafts.clear();
    job.chances.begin_step();
    Walk walk{.job = &job, .limit = std::min(limits[i], most_), .ahead = nullptr};
    if (!job.request.draft || walk.limit <= 0) continue;
    possible_ = true;
    if (!wants_another(walk)) continue;
    if (job.request.constraint) walk.ahead = job.request.constraint->clone();
    walks_.push_back(std::move(walk));
  }
  if (!always_ && current_->curious()) keep_curious(jobs.size(), beside);
  const auto goes_by_peaks = [](const Walk& walk) {
    return walk.job->answer->sampler().goes_by_peaks();
  };
  if (drafter_.better_at_once() && std::ranges::all_of(walks_, goes_by_peaks)) {
    draft_at_once(rows);
  } else {
    draft_in_rounds(rows);
  }
  walks_.clear();
  outcome_.draft_seconds = clock.seconds();
}

void BatchDrafting::limit_walks(int64_t rows) {
  const int64_t most = std::min(rows, drafter_.max_questions());
  if (int64_t(walks_.size()) > most) walks_.resize(size_t(most));
}

void BatchDrafting::draft_at_once(int64_t rows) {
  limit_walks(rows);
  if (walks_.empty()) return;
  // As many for all as pay for one of them, if all of them can be verified.
  int64_t rounds = 0;
  for (const Walk& walk : walks_)
    rounds = std::max(
        rounds, always_ ? walk.limit : drafts_that_pay(walk.job->chances, *current_, walk.limit));
  rounds = std::min(rounds, std::max<int64_t>(1, rows / int64_t(walks_.size())));
  if (rounds == 0) return;
  // After its limit a sequence has no slots. Who is that near to an end does without drafts, or
  // all others would have no more than it may.
  std::erase_if(walks_, [&](const Walk& walk) { return walk.limit < rounds; });
  questions_.clear();
  for (const Walk& walk : walks_)
    questions_.push_back({.sequence = *walk.job->sequence, .id = walk.job->tokens.back()});
  drafter_.first_rounds(questions_, rounds);
  for (size_t i = 0; i < walks_.size(); ++i) {
    Job& job = *walks_[i].job;
    outcome_.made += rounds;
    job.summary.drafts.made += rounds;
    for (int64_t round = 0; round < rounds; ++round) {
      const std::optional<Sampler::Proposal> proposal =
          job.answer->sampler().propose(drafter_.peak(round, int64_t(i)));
      if (!proposal || !take(walks_[i], *proposal)) break;
    }
  }
}

void BatchDrafting::draft_in_rounds(int64_t rows) {
  for (bool first = true; !walks_.empty() && rows > 0; first = false) {
    limit_walks(rows);
    questions_.clear();
    for (Walk& walk : walks_)
      questions_.push_back({.sequence = *walk.job->sequence,
                            .id = first ? walk.job->tokens.back() : walk.job->drafts.back(),
                            .before = walk.question});
    if (first) {
      drafter_.first_round(questions_);
    } else {
      drafter_.next_round(questions_);
    }
    for (size_t i = 0; i < walks_.size(); ++i) {
      Job& job = *walks_[i].job;
      ++outcome_.made;
      ++job.summary.drafts.made;
      if (!take(walks_[i], job.answer->sampler().propose(drafter_.logits(int64_t(i)),
                                                         int64_t(job.drafts.size()))))
        continue;
      --rows;
      walks_[i].question = int64_t(i);
      if (wants_another(walks_[i])) going_on_.push_back(std::move(walks_[i]));
    }
    walks_.swap(going_on_);
    going_on_.clear();
  }
}

void BatchDrafting::end_step(std::span<Job* const> jobs, std::span<const int64_t> right,
                             std::optional<double> verify_seconds) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto verified = int64_t(jobs[i]->drafts.size());
    jobs[i]->chances.end_step(verified, right[i]);
    outcome_.verified += verified;
    outcome_.right += right[i];
  }
  if (!verify_seconds || !possible_) return;
  outcome_.sequences = int64_t(jobs.size());
  outcome_.verify_seconds = *verify_seconds;
  costs_for(jobs.size()).end_step(outcome_);
}

}  // namespace slip
