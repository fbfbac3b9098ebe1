// From what a request says about the form of its answer to the constraint that enforces it.
#pragma once

#include <memory>
#include <variant>

#include "grammar/grammar.h"
#include "server/api.h"
#include "server/chat_request.h"
#include "text/reasoning.h"

namespace slip {

class ConstraintMaker {
 public:
  // `model` must outlive this.
  explicit ConstraintMaker(const ServedModel& model);

  // Null if the answer is free.
  ApiResult<std::unique_ptr<Constraint>> for_chat(const ChatRequest& request,
                                                  Thoughts thoughts) const;
  ApiResult<std::unique_ptr<Constraint>> for_text(const AnswerOptions& options) const;

 private:
  ApiResult<std::unique_ptr<Constraint>> for_form(const ChatRequest& request,
                                                  Thoughts thoughts) const;
  ApiResult<std::unique_ptr<Constraint>> make(const ConstraintSpec& spec,
                                              const AnswerOptions& options,
                                              const std::string& param) const;

  const ServedModel& model_;
  std::shared_ptr<const TokenIndex> tokens_;
};

}  // namespace slip
