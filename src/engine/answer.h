// The tokens and the text of one answer: chooses every token and knows when to end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/sampling.h"
#include "engine/stop_strings.h"
#include "text/detokenizer.h"

namespace slip {

enum class FinishReason { stop_token, stop_string, max_tokens, context_full, cancelled };
const char* name_of(FinishReason reason);

struct AnswerLimits {
  int64_t room = 0;               // tokens that the context has room for; the last needs no place
  int64_t max_tokens = -1;        // -1: until the context is full
  int64_t min_tokens = 0;         // no stop token before
  std::vector<int32_t> stop_ids;  // end the answer and are not part of it
  std::vector<std::string> stop_strings;
};

class Answer {
 public:
  // Without a tokenizer there is no text. The constraint, if any, is advanced with every token.
  Answer(const AnswerLimits& limits, Sampler sampler, const Tokenizer* tokenizer,
         Constraint* constraint = nullptr);

  // Chooses the next token from logits, which may be changed. `text` is what became certain with
  // it: whole characters, no part of a stop string. A stop token is no part of the answer.
  struct Token {
    int32_t id;
    bool is_part;
    std::string text;
  };
  Token next(const LogitRow& logits);

  // Set once the answer has ended.
  const std::optional<FinishReason>& finish() const { return finish_; }
  // The text that was held back until the end; once.
  std::string rest();
  const std::string& stop_string() const { return stops_.found(); }

  int64_t tokens() const { return tokens_; }
  // How many more may be chosen.
  int64_t wanted() const;
  Sampler& sampler() { return sampler_; }

 private:
  bool is_stop(int32_t id) const;
  std::string to_text(int32_t id);

  AnswerLimits limits_;
  Sampler sampler_;
  Constraint* constraint_;
  std::optional<Detokenizer> detokenizer_;
  StopStrings stops_;
  int64_t tokens_ = 0;
  std::optional<FinishReason> finish_;
};

}  // namespace slip
