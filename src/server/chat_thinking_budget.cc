#include "server/chat_thinking_budget.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/output_format.h"

namespace slip {
namespace {

// What Qwen3's makers let the model read when its time is up, in fewer words: an abrupt end makes
// it go on thinking in the answer.
constexpr std::string_view kClosingWords = "\n\nTime to answer.\n";

}  // namespace

ThinkingBudget::ThinkingBudget(const Tokenizer& tokenizer, const ThinkingLimit& limit,
                               std::unique_ptr<Constraint> then)
    : begun_(limit.thoughts == Thoughts::begun),
      left_(std::max<int64_t>(limit.tokens, 0)),
      then_(std::move(then)),
      one_(tokenizer.vocab_size()) {
  Ending ending;
  const OutputFormat& format = output_format_of(tokenizer);
  ending.close = tokenizer.encode(cat(kClosingWords, format.thoughts_close, format.after_thoughts));
  if (const auto id = tokenizer.find(format.thoughts_close)) ending.natural.push_back(*id);
  if (const auto id = tokenizer.find(format.call_open); id && limit.calls_end_them)
    ending.natural.push_back(*id);
  ending.open = tokenizer.find(format.thoughts_open);
  ending.vocabulary = tokenizer.vocab_size();
  ending_ = std::make_shared<const Ending>(std::move(ending));
}

ThinkingBudget::ThinkingBudget(const ThinkingBudget& other)
    : ending_(other.ending_),
      begun_(other.begun_),
      left_(other.left_),
      at_(other.at_),
      then_(other.then_ ? other.then_->clone() : nullptr),
      one_(other.ending_->vocabulary) {}

bool ThinkingBudget::allows(int32_t id) {
  if (closing()) return id == ending_->close[at_];
  return !then_ || then_->allows(id);
}

const TokenSet& ThinkingBudget::allowed() {
  if (!closing() && then_) return then_->allowed();
  one_.clear();
  if (closing()) {
    one_.add(ending_->close[at_]);
  } else {
    for (int32_t id = 0; id < ending_->vocabulary; ++id) one_.add(id);
  }
  return one_;
}

bool ThinkingBudget::free() const { return !closing() && (!then_ || then_->free()); }

void ThinkingBudget::advance(int32_t id) {
  if (then_) then_->advance(id);
  if (!begun_) {
    begun_ = id == ending_->open;
    return;
  }
  if (left_ < 0) return;
  if (left_ == 0) {
    if (++at_ == ending_->close.size()) left_ = -1;
    return;
  }
  const std::vector<int32_t>& natural = ending_->natural;
  const bool over = std::find(natural.begin(), natural.end(), id) != natural.end();
  left_ = over ? -1 : left_ - 1;
}

std::unique_ptr<Constraint> ThinkingBudget::clone() const {
  return std::unique_ptr<Constraint>(new ThinkingBudget(*this));
}

}  // namespace slip
