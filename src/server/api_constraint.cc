#include "server/api_constraint.h"

#include <algorithm>
#include <utility>

#include "server/chat_messages.h"
#include "server/chat_thinking_budget.h"

namespace slip {
namespace {

using Made = ApiResult<std::unique_ptr<Constraint>>;

ConstraintSpec spec_of(const AnswerForm& form) {
  ConstraintSpec spec;
  switch (form.kind) {
    case AnswerForm::Kind::text: unreachable("a constraint for free text");
    case AnswerForm::Kind::json_object: spec.kind = ConstraintSpec::Kind::json_object; break;
    case AnswerForm::Kind::json_schema: spec.kind = ConstraintSpec::Kind::json_schema; break;
    case AnswerForm::Kind::regex: spec.kind = ConstraintSpec::Kind::regex; break;
    case AnswerForm::Kind::choice: spec.kind = ConstraintSpec::Kind::choice; break;
    case AnswerForm::Kind::grammar: spec.kind = ConstraintSpec::Kind::grammar; break;
  }
  spec.schema = form.schema;
  spec.strict = form.strict;
  spec.text = form.pattern;
  spec.choices = form.choices;
  return spec;
}

void add_tools(ConstraintSpec& spec, const ChatRequest& request) {
  spec.tool_choice =
      must_call_tools(request.tool_use) ? ToolChoice::required : ToolChoice::automatic;
  spec.parallel_calls = request.parallel_tool_calls;
  for (const Json& tool : request.tools)
    if (request.tool_use.name.empty() || tool_name(tool) == request.tool_use.name)
      spec.tools.push_back(tool);
}

// Tools come in their wrapping here.
bool is_strict(const Json& tool) {
  return is_true(member_of(member_of(&tool, "function"), "strict"));
}

}  // namespace

ConstraintMaker::ConstraintMaker(const ServedModel& model)
    : model_(model), tokens_(TokenIndex::make(*model.tokenizer)) {}

Made ConstraintMaker::make(const ConstraintSpec& spec, const AnswerOptions& options,
                           const std::string& param) const {
  std::vector<int32_t> stops = model_.defaults.stop_ids;
  stops.insert(stops.end(), options.stop_ids.begin(), options.stop_ids.end());
  Result<std::unique_ptr<Constraint>> made = make_constraint(spec, tokens_, stops);
  if (!made.ok()) return bad_request(made.failure().message, param);
  return std::move(made).value();
}

Made ConstraintMaker::for_text(const AnswerOptions& options) const {
  if (options.form.kind == AnswerForm::Kind::text) return nullptr;
  return make(spec_of(options.form), options, options.form.param);
}

Made ConstraintMaker::for_form(const ChatRequest& request, Thoughts thoughts) const {
  const AnswerForm& form = request.options.form;
  const bool must_call = must_call_tools(request.tool_use);
  const bool has_form = form.kind != AnswerForm::Kind::text && !must_call;
  ConstraintSpec spec;
  spec.kind = ConstraintSpec::Kind::tool_calls;
  if (has_form) spec = spec_of(form);
  spec.thoughts = thoughts;
  const auto form_alone = [&]() -> Made {
    if (!has_form) return nullptr;
    return make(spec, request.options, form.param);
  };
  if (request.tools.empty()) return form_alone();
  ConstraintSpec with_tools = spec;
  add_tools(with_tools, request);
  Made made = make(with_tools, request.options, "tools");
  if (std::holds_alternative<std::unique_ptr<Constraint>>(made)) return made;
  // A tool with a schema that cannot be enforced can still be called, unless that was promised.
  Made without_tools = form_alone();
  const bool must_hold = must_call || std::ranges::any_of(request.tools, is_strict);
  const bool form_fits = std::holds_alternative<std::unique_ptr<Constraint>>(without_tools);
  return must_hold && form_fits ? std::move(made) : std::move(without_tools);
}

Made ConstraintMaker::for_chat(const ChatRequest& request, Thoughts thoughts) const {
  Made made = for_form(request, thoughts);
  if (std::holds_alternative<ApiError>(made) || thoughts == Thoughts::none ||
      request.thinking_budget < 0)
    return made;
  const ThinkingLimit limit = {thoughts, request.thinking_budget, !request.tools.empty()};
  return std::make_unique<ThinkingBudget>(*model_.tokenizer, limit, std::move(std::get<0>(made)));
}

}  // namespace slip
