#include "grammar/grammar.h"

#include "grammar/characters.h"
#include "grammar/gbnf.h"
#include "grammar/grammar_constraint.h"
#include "grammar/json_rules.h"
#include "grammar/program.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/tool_rules.h"

namespace slip {
namespace {

using SpecKind = ConstraintSpec::Kind;

// Of a schema, or of all tools or choices together; JSON written without spaces.
constexpr size_t kMaxFormBytes = 512 << 10;

Status check_size(const char* what, size_t bytes) {
  if (bytes <= kMaxFormBytes) return {};
  return error(what, ": ", bytes, " bytes; at most ", kMaxFormBytes, " can be followed");
}

size_t size_of(std::span<const Json> schemas) {
  size_t bytes = 0;
  for (const Json& schema : schemas) bytes += compact_json(schema).size();
  return bytes;
}

Result<ExprId> add_calls(JsonRules& json, const ConstraintSpec& spec, const OutputFormat& format) {
  SLIP_TRY_STATUS(check_size("the tools together", size_of(spec.tools)));
  return add_tool_calls(json, format, spec.tools, spec.parallel_calls, spec.strict);
}

Result<ExprId> add_form(Rules& rules, JsonRules& json, const ConstraintSpec& spec,
                        const OutputFormat& format) {
  switch (spec.kind) {
    case SpecKind::json_object: return json.object();
    case SpecKind::json_schema:
      SLIP_TRY_STATUS(check_size("the schema", size_of({&spec.schema, 1})));
      SLIP_TRY_STATUS(check_depth(spec.schema));
      return add_schema(json, spec.schema, spec.schema, {.closed_objects = spec.strict});
    case SpecKind::regex: {
      SLIP_TRY(const RegexNode regex, parse_regex(spec.text));
      return regex_expression(rules, regex, RegexMeaning::whole, Spelling::plain);
    }
    case SpecKind::choice: {
      if (spec.choices.empty()) return error("a choice of no texts");
      size_t bytes = 0;
      for (const std::string& choice : spec.choices) bytes += choice.size() + 1;
      SLIP_TRY_STATUS(check_size("the choices together", bytes));
      return rules.literals(spec.choices);
    }
    case SpecKind::grammar: return add_gbnf(rules, spec.text);
    case SpecKind::tool_calls: return add_calls(json, spec, format);
  }
  unreachable("ConstraintSpec::Kind");
}

ExprId as_rule(Rules& rules, const char* name, ExprId body) {
  const RuleId rule = rules.add_rule(name);
  rules.define(rule, body);
  return rules.call(rule);
}

// The whole answer: what comes before the form, and the form.
Result<ExprId> add_answer(Rules& rules, JsonRules& json, const ConstraintSpec& spec,
                          const OutputFormat& format) {
  SLIP_TRY(const ExprId body, add_form(rules, json, spec, format));
  ExprId form = as_rule(rules, "the form", body);
  const bool only_calls = spec.kind == SpecKind::tool_calls;
  if (only_calls && spec.tool_choice == ToolChoice::automatic)
    return rules.sequence(
        {rules.anything_without({std::string(format.call_open)}), rules.optional(form)});
  const bool has_tools = only_calls || !spec.tools.empty();
  ExprId calls = form;
  if (has_tools && !only_calls) {
    SLIP_TRY(const ExprId of_tools, add_calls(json, spec, format));
    calls = as_rule(rules, "the calls", of_tools);
    form = rules.choice({form, calls});
  }
  if (spec.thoughts == Thoughts::none) return form;
  // Models leave a blank line behind their thoughts, and may call tools from within them.
  const ExprId line_ends = rules.repeat(rules.literal("\n"), 0, 2);
  const ExprId answer = rules.sequence({rules.tag(format.thoughts_close), line_ends, form});
  std::vector<std::string> ends = {std::string(format.thoughts_close)};
  if (has_tools) ends.emplace_back(format.call_open);
  const ExprId thoughts = rules.sequence(
      {rules.bytes_without(std::move(ends)), has_tools ? rules.choice({answer, calls}) : answer});
  if (spec.thoughts == Thoughts::begun) return thoughts;
  return rules.choice({form, rules.sequence({rules.tag(format.thoughts_open), thoughts})});
}

}  // namespace

Result<std::unique_ptr<Constraint>> make_constraint(const ConstraintSpec& spec,
                                                    std::shared_ptr<const TokenIndex> tokens,
                                                    std::span<const int32_t> stop_ids) {
  const OutputFormat& format = tokens->output_format();
  Rules rules;
  JsonRules json(rules);
  const RuleId start = rules.add_rule("the answer");
  SLIP_TRY(const ExprId answer, add_answer(rules, json, spec, format));
  rules.define(start, answer);
  SLIP_TRY(Program program, compile_rules(rules, start, tokens->single_bytes()));
  std::unique_ptr<Constraint> constraint =
      std::make_unique<GrammarConstraint>(std::move(program), std::move(tokens), stop_ids);
  return constraint;
}

}  // namespace slip
