#include "slipstream/eval/drafts.h"

#include <algorithm>
#include <numeric>

#include "slipstream/eval/eval.h"
#include "slipstream/eval/stats.h"

namespace slip {
namespace {

// Slots whose first drafts are computed together. A coded cache keeps the page being filled as it
// is and all earlier ones as codes, so what is to be overwritten must not leave its page.
constexpr int64_t kBlock = kPageLen;

Tensor f32(const Shape& shape) { return Tensor(host_memory(), DType::f32, shape); }

}  // namespace

Result<std::vector<float>> feed_for_drafts(
    Session& session, std::span<const int32_t> ids,
    const std::function<void(int64_t position, std::span<const float> logits)>& each) {
  std::vector<float> hidden;
  hidden.reserve(ids.size() * size_t(session.engine().model().info().hidden));
  SLIP_TRY_STATUS(
      feed_rows(session, ids,
                [&](int64_t position, std::span<const float> logits, std::span<const float> row) {
                  each(position, logits);
                  hidden.insert(hidden.end(), row.begin(), row.end());
                }));
  return hidden;
}

TextDrafts::TextDrafts(Session& session)
    : session_(session), drafter_(*session.engine().model().drafter()) {
  const ModelInfo& info = session.engine().model().info();
  check(drafter_.max_rows() >= kBlock, "a drafter that cannot draft ", kBlock, " rows");
  const auto tokens = int64_t(drafter_.tokens().size());
  rows_.resize(size_t(kBlock));
  std::iota(rows_.begin(), rows_.end(), int64_t(0));
  ids_ = Tensor(host_memory(), DType::i32, {kBlock});
  hidden_ = f32({kBlock, info.hidden});
  passed_ = f32({kBlock, info.hidden});
  logits_ = f32({kBlock, tokens > 0 ? tokens : info.vocabulary});
}

int32_t TextDrafts::best(std::span<const float> logits) const {
  const std::span<const int32_t> tokens = drafter_.tokens();
  const int32_t column = best_token(logits);
  return tokens.empty() ? column : tokens[size_t(column)];
}

void TextDrafts::run(std::span<const int32_t> ids, std::span<const float> hidden,
                     const Follow& follow) {
  const int64_t slots = int64_t(ids.size()) - 1, width = session_.engine().model().info().hidden;
  for (int64_t start = 0; start < slots; start += kBlock) {
    const int64_t rows = std::min(kBlock, slots - start);
    const auto first_drafts = [&](Logits wanted) {
      std::copy_n(ids.begin() + start + 1, rows, ids_.view.i32());
      std::copy_n(hidden.begin() + start * width, rows * width, hidden_.view.f32());
      pass(0, rows, start, hidden_.view, wanted);
    };
    first_drafts(Logits::all);
    // Later drafts of slot p see the first-draft keys of slots 0..p and write their own over those
    // behind; from the back, nothing is overwritten before it was used.
    bool overwritten = false;
    for (int64_t row = rows - 1; row >= 0; --row)
      overwritten |= follow_slot(row, start + row, follow);
    // The next block must see first-draft keys again.
    if (overwritten && start + rows < slots) first_drafts(Logits::none);
  }
}

bool TextDrafts::follow_slot(int64_t row, int64_t slot, const Follow& follow) {
  std::optional<int32_t> token = follow(slot, 0, logits_of(row));
  const bool goes_on = token.has_value();
  for (int64_t place = 1; token; ++place) {
    ids_.view.i32()[row] = *token;
    pass(row, 1, slot + place, passed_.view, Logits::all);
    token = follow(slot, place, logits_of(row));
  }
  return goes_on;
}

void TextDrafts::pass(int64_t first, int64_t rows, int64_t start, const View& hidden,
                      Logits wanted) {
  const Span span{.first_row = 0,
                  .rows = rows,
                  .start = start,
                  .state_slot = Cache::state_slot(session_.sequence()),
                  .pages = session_.engine().cache().pages(session_.sequence())};
  DraftStep step{.ids = ids_.view.slice(first, rows),
                 .hidden = hidden.slice(first, rows),
                 .spans = {&span, 1},
                 .outputs = {},
                 .logits = {},
                 .next_hidden = {}};
  if (wanted == Logits::all) {
    step.outputs = std::span(rows_).first(size_t(rows));
    step.logits = logits_.view.slice(first, rows);
    step.next_hidden = passed_.view.slice(first, rows);
  }
  drafter_.draft({&step, 1}, session_.engine().cache());
}

std::span<const float> TextDrafts::logits_of(int64_t row) const {
  const View logits = logits_.view.slice(row, 1);
  return {logits.f32(), size_t(logits.count())};
}

namespace {

// Draft `place` of a slot is about the token behind position slot + 1 + place.
struct MadeDraft {
  int64_t slot, place;
  int32_t token;

  size_t judge() const { return size_t(slot + 1 + place); }
};

// The token with which drafting goes on: the draft, if it is the text and there is one more place.
std::optional<int32_t> next_in_text(const MadeDraft& draft, std::span<const int32_t> ids,
                                    size_t places) {
  const size_t token = draft.judge() + 1;
  const bool goes_on = size_t(draft.place) + 1 < places && token < ids.size();
  if (!goes_on || draft.token != ids[token]) return std::nullopt;
  return draft.token;
}

void judge(const MadeDraft& draft, std::span<const int32_t> choices,
           std::span<DraftAgreement> places) {
  DraftAgreement& place = places[size_t(draft.place)];
  ++place.judged;
  if (draft.token == choices[draft.judge()]) ++place.agreed;
}

Status judge_behind_the_text(Session& session, std::span<const int32_t> ids,
                             std::span<DraftAgreement> places) {
  std::vector<int32_t> choices;
  SLIP_TRY(const std::vector<float> hidden,
           feed_for_drafts(session, ids, [&](int64_t, std::span<const float> logits) {
             choices.push_back(best_token(logits));
           }));
  TextDrafts drafts(session);
  drafts.run(ids, hidden, [&](int64_t slot, int64_t place, std::span<const float> logits) {
    const MadeDraft draft{slot, place, drafts.best(logits)};
    judge(draft, choices, places);
    return next_in_text(draft, ids, places.size());
  });
  return {};
}

// Token by token, as the engine decodes: a drafter without keys reads the model's, and finds those
// of a window gone when the text is over.
Status judge_while_reading(Session& session, std::span<const int32_t> ids,
                           std::span<DraftAgreement> places) {
  std::vector<int32_t> choices;
  std::vector<MadeDraft> made;
  const auto keep = [&](int64_t slot, int64_t place, std::optional<LogitRow> logits) {
    if (!logits) return std::optional<int32_t>{};
    made.push_back({slot, place, best_token(logits->values())});
    return next_in_text(made.back(), ids, places.size());
  };
  for (int64_t slot = 0; slot < int64_t(ids.size()); ++slot) {
    SLIP_TRY_STATUS(session.feed(ids.subspan(size_t(slot), 1)));
    SLIP_TRY_STATUS(check_logits(session.logits()));
    choices.push_back(best_token(session.logits()));
    if (slot + 1 == int64_t(ids.size())) break;
    // Drafting goes on while drafts are the text, so the text is what was drafted.
    const auto behind = ids.subspan(size_t(slot) + 1);
    int64_t place = 0;
    while (keep(slot, place, session.draft(behind.first(size_t(place) + 1)))) ++place;
  }
  for (const MadeDraft& draft : made) judge(draft, choices, places);
  return {};
}

}  // namespace

Status judge_drafts(Session& session, std::span<const int32_t> ids,
                    std::span<DraftAgreement> places) {
  session.clear();
  return session.engine().model().drafter()->keys() == DrafterKeys::own
             ? judge_behind_the_text(session, ids, places)
             : judge_while_reading(session, ids, places);
}

double tokens_per_step(std::span<const DraftAgreement> places) {
  double tokens = 1, chance = 1;
  for (const DraftAgreement& place : places) {
    chance *= place.share();
    tokens += chance;
  }
  return tokens;
}

}  // namespace slip
