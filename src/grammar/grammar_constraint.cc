#include "grammar/grammar_constraint.h"

#include <algorithm>

#include "base/check.h"

namespace slip {
namespace {

// Grammars that can read a text in very many ways would take the engine's time from everybody else.
// Each token earns credit, and the work of matchers is paid with it: about 0.3 ms per token in the
// long run and 50 ms at once. JSON schemas seldom need a thirtieth of that.
constexpr int64_t kCreditPerToken = 30'000;
constexpr int64_t kMostCredit = 5'000'000;

bool goes_on_after(std::string_view text, std::string_view tag) {
  const size_t at = text.find(tag);
  return at != std::string_view::npos && at + tag.size() < text.size();
}

}  // namespace

GrammarConstraint::Shared::Shared(Program compiled, std::shared_ptr<const TokenIndex> index)
    : program(std::move(compiled)),
      tokens(std::move(index)),
      matcher(program),
      masks(program, *tokens),
      credit(kMostCredit) {
  for (const std::string& tag : program.tags) tag_ids.push_back(tokens->find_special(tag));
  has_free_text = std::any_of(program.code.begin(), program.code.end(),
                              [](const Instruction& at) { return at.free_text; });
  if (!has_free_text) return;
  for (int32_t id = 0; id < tokens->vocabulary() && has_free_text; ++id)
    for (const std::string& tag : program.tags)
      if (goes_on_after(tokens->bytes(id), tag)) has_free_text = false;
}

void GrammarConstraint::Shared::pay() {
  const int64_t work = matcher.work() + masks.work();
  credit -= work - paid;
  paid = work;
}

void GrammarConstraint::Shared::follow_few_readings() {
  narrow = true;
  matcher.narrow();
  masks.narrow();
  pay();
  credit = kMostCredit;
}

void GrammarConstraint::Shared::fail() {
  failure =
      error("the grammar is too ambiguous: there are too many ways to read the answer so far; ",
            "write it so that each text can be read in few ways")
          .about("grammar");
}

GrammarConstraint::GrammarConstraint(Program program, std::shared_ptr<const TokenIndex> tokens,
                                     std::span<const int32_t> stop_ids)
    : shared_(std::make_shared<Shared>(std::move(program), std::move(tokens))) {
  shared_->stop_ids.assign(stop_ids.begin(), stop_ids.end());
  places_ = {{shared_->program.start, 0, FramePtr(new Frame)}};
}

bool GrammarConstraint::is_stop(int32_t id) const {
  return std::find(shared_->stop_ids.begin(), shared_->stop_ids.end(), id) !=
         shared_->stop_ids.end();
}

const Expansion& GrammarConstraint::following() {
  if (!following_known_) shared_->matcher.expand(places_, kMaxCallDepth, following_);
  following_known_ = true;
  return following_;
}

bool GrammarConstraint::in_free_text(bool tag_may_have_begun) const {
  return shared_->has_free_text &&
         std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
           const Instruction& at = shared_->program.code[size_t(place.pc)];
           return at.free_text && (tag_may_have_begun || at.text_kinds);
         });
}

bool GrammarConstraint::free() const { return shared_->failure || in_free_text(false); }

const Error* GrammarConstraint::failure() const {
  return shared_->failure ? &*shared_->failure : nullptr;
}

void GrammarConstraint::step_token(int32_t id) {
  after_.clear();
  for (const Place& place : following().tags) {
    const Instruction& at = shared_->program.code[size_t(place.pc)];
    if (shared_->tag_ids[size_t(at.counter)] == id)
      after_.push_back(shared_->matcher.arrive(at.next, place.count, place.frame));
  }
  if (!after_.empty()) return;
  const std::string_view bytes = shared_->tokens->bytes(id);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) shared_->matcher.expand(after_, kMaxCallDepth, scratch_);
    shared_->matcher.step(i == 0 ? following() : scratch_, uint8_t(bytes[i]), after_);
    if (after_.empty()) return;
  }
}

bool GrammarConstraint::allows(int32_t id) {
  if (id < 0 || id >= shared_->tokens->vocabulary()) return false;
  if (free()) return true;
  if (is_stop(id)) return following().ended;
  step_token(id);
  return !after_.empty() || (shared_->tokens->is_special(id) && in_free_text(true));
}

void GrammarConstraint::find_text_tokens() {
  shared_->pay();
  if (shared_->masks.add_tokens(places_, std::max<int64_t>(shared_->credit, 0), allowed_)) return;
  if (!shared_->narrow) {
    shared_->follow_few_readings();
    following_known_ = false;
    allowed_.clear();
    if (shared_->masks.add_tokens(places_, shared_->credit, allowed_)) return;
  }
  shared_->fail();
}

const TokenSet& GrammarConstraint::allowed() {
  const int32_t vocabulary = shared_->tokens->vocabulary();
  allowed_ = TokenSet(vocabulary);
  if (!free()) find_text_tokens();
  if (free()) {
    for (int32_t id = 0; id < vocabulary; ++id) allowed_.add(id);
    return allowed_;
  }
  for (const Place& place : following().tags) {
    const Instruction& at = shared_->program.code[size_t(place.pc)];
    if (const std::optional<int32_t> id = shared_->tag_ids[size_t(at.counter)]) allowed_.add(*id);
  }
  if (in_free_text(true))
    for (const int32_t id : shared_->tokens->special_ids()) allowed_.add(id);
  for (const int32_t id : shared_->stop_ids) {
    if (id < 0 || id >= vocabulary) continue;
    if (following().ended)
      allowed_.add(id);
    else
      allowed_.remove(id);
  }
  return allowed_;
}

void GrammarConstraint::advance(int32_t id) {
  if (is_stop(id) || shared_->failure) return;
  step_token(id);
  // In free text, special tokens that are no tag leave the place as it is.
  if (after_.empty() && in_free_text(true)) return;
  if (after_.empty()) {
    // Masks and single tokens may differ in which readings they leave out.
    check(shared_->matcher.has_cut(), "Constraint::advance: token ", id, " is not allowed here");
    return shared_->fail();
  }
  places_.swap(after_);
  following_known_ = false;
  shared_->pay();
  shared_->credit = std::min(kMostCredit, shared_->credit + kCreditPerToken);
  if (shared_->credit >= 0) return;
  if (shared_->narrow) return shared_->fail();
  shared_->follow_few_readings();
}

std::unique_ptr<Constraint> GrammarConstraint::clone() const {
  std::unique_ptr<GrammarConstraint> copy(new GrammarConstraint(shared_));
  copy->places_ = places_;
  copy->following_ = following_;
  copy->following_known_ = following_known_;
  return copy;
}

}  // namespace slip
