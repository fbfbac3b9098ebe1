#include "engine/draft_chooser.h"

#include <algorithm>

namespace slip {
namespace {

// Of so many sequences one drafts when it is only to learn what that costs, those first that have
// let the fewest slots pass: these have to be computed before.
constexpr size_t kCuriousShare = 8;

// So many sequences, where drafts have not paid, take every fourth occasion: the slots that a few
// have let pass, the drafts and the longer verification cost nearly as much as a step.
constexpr size_t kCrowd = 8;
constexpr int64_t kCrowdPatience = 4;

}  // namespace

DraftChooser::DraftChooser(const DraftLength& length, int64_t sequences) : length_(length) {
  walks_.reserve(size_t(sequences));
  going_on_.reserve(size_t(sequences));
  questions_.reserve(size_t(sequences));
}

DraftPasses::KeepUp DraftChooser::keep_up() const {
  // Who falls behind before drafts are tried again cannot take part.
  const bool pays = !length_.idle() || length_.exploring();
  return pays ? DraftPasses::KeepUp::always : DraftPasses::KeepUp::if_free;
}

bool DraftChooser::wants_another(const Sequence& sequence) const {
  return length_.wants_another(sequence.text->chances(), sequence.limit);
}

bool DraftChooser::take(DraftedText& text, const Sampler::Proposal& proposal) const {
  text.chances().drafted(proposal.margin);
  return length_.worth_verifying(text.chances()) && text.take(proposal.id);
}

void DraftChooser::keep_curious(const DraftPasses& passes, size_t sequences, Beside beside) {
  const bool patient =
      sequences >= kCrowd && length_.idle() && ++crowd_occasions_ % kCrowdPatience != 0;
  // Times of steps with prompts are not believed, so they teach nothing.
  if (patient || beside == Beside::prompts) return walks_.clear();
  std::ranges::sort(walks_, {}, [&](const Walk& walk) { return passes.outstanding(walk.id); });
  walks_.resize(std::min(walks_.size(), (sequences + kCuriousShare - 1) / kCuriousShare));
}

void DraftChooser::draft(DraftPasses& passes, std::span<const Sequence> sequences, int64_t rows,
                         Beside beside) {
  made_ = 0;
  possible_ = false;
  length_.begin_step(int64_t(sequences.size()));
  walks_.clear();
  for (const Sequence& sequence : sequences) {
    if (sequence.limit <= 0) continue;
    possible_ = true;
    sequence.text->chances().begin_step();
    if (wants_another(sequence)) walks_.push_back({sequence});
  }
  if (length_.curious()) keep_curious(passes, sequences.size(), beside);
  const auto goes_by_peaks = [](const Walk& walk) { return walk.text->sampler().goes_by_peaks(); };
  if (passes.better_at_once() && std::ranges::all_of(walks_, goes_by_peaks)) {
    draft_at_once(passes, rows);
  } else {
    draft_in_rounds(passes, rows);
  }
  walks_.clear();
}

void DraftChooser::limit_walks(const DraftPasses& passes, int64_t rows) {
  const int64_t most = std::min(rows, passes.max_questions());
  if (int64_t(walks_.size()) > most) walks_.resize(size_t(most));
}

void DraftChooser::draft_at_once(DraftPasses& passes, int64_t rows) {
  limit_walks(passes, rows);
  if (walks_.empty()) return;
  // As many for all as pay for one of them, if all of them can be verified.
  int64_t rounds = 0;
  for (const Walk& walk : walks_)
    rounds = std::max(rounds, length_.drafts_that_pay(walk.text->chances(), walk.limit));
  rounds = std::min(rounds, std::max<int64_t>(1, rows / int64_t(walks_.size())));
  if (rounds == 0) return;
  // After its limit a sequence has no slots. Who is that near to an end does without drafts, or
  // all others would have no more than it may.
  std::erase_if(walks_, [&](const Walk& walk) { return walk.limit < rounds; });
  questions_.clear();
  for (const Walk& walk : walks_)
    questions_.push_back({.sequence = walk.id, .id = walk.text->step().back()});
  passes.first_rounds(questions_, rounds);
  made_ = rounds * int64_t(walks_.size());
  for (size_t i = 0; i < walks_.size(); ++i) {
    DraftedText& text = *walks_[i].text;
    text.count_made(rounds);
    for (int64_t round = 0; round < rounds; ++round) {
      const std::optional<Sampler::Proposal> proposal =
          text.sampler().propose(passes.peak(round, int64_t(i)));
      if (!proposal || !take(text, *proposal)) break;
    }
  }
}

void DraftChooser::draft_in_rounds(DraftPasses& passes, int64_t rows) {
  for (bool first = true; !walks_.empty() && rows > 0; first = false) {
    limit_walks(passes, rows);
    questions_.clear();
    for (const Walk& walk : walks_)
      questions_.push_back(
          {.sequence = walk.id, .id = walk.text->step().back(), .before = walk.question});
    if (first) {
      passes.first_round(questions_);
    } else {
      passes.next_round(questions_);
    }
    made_ += int64_t(walks_.size());
    for (size_t i = 0; i < walks_.size(); ++i) {
      DraftedText& text = *walks_[i].text;
      text.count_made(1);
      if (!take(text, text.sampler().propose(passes.logits(int64_t(i)), text.chances().made())))
        continue;
      --rows;
      walks_[i].question = int64_t(i);
      if (wants_another(walks_[i])) going_on_.push_back(walks_[i]);
    }
    walks_.swap(going_on_);
    going_on_.clear();
  }
}

void DraftChooser::end_step(std::span<const DraftedText::Verified> sequences,
                            const std::optional<Seconds>& seconds) {
  DraftOutcome outcome{.made = made_, .sequences = int64_t(sequences.size())};
  for (const DraftedText::Verified& each : sequences) {
    outcome.verified += each.drafts;
    outcome.right += each.right;
  }
  if (!seconds) return;
  if (!possible_) return length_.rest();
  outcome.draft_seconds = seconds->drafting;
  outcome.verify_seconds = seconds->verifying;
  length_.end_step(outcome);
}

}  // namespace slip
