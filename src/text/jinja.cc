#include "text/jinja.h"

#include <exception>

#include "text/jinja_ast.h"
#include "text/jinja_eval.h"
#include "text/jinja_parser.h"

namespace slip::jinja {
namespace {

Error to_error(const Failure& failure, const std::string& source, int line) {
  if (failure.raised_by_template) return Error{failure.message};
  Error made = error(source, " line ", line, ": ", failure.message);
  return failure.too_much ? std::move(made).about("context") : made;
}

}  // namespace

Template::Template(std::unique_ptr<const Ast> ast, std::string source)
    : ast_(std::move(ast)), source_(std::move(source)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view text, const std::string& source) {
  try {
    return Template(Parser(tokenize(text)).run(), source);
  } catch (const Failure& failure) {
    return to_error(failure, source, failure.line);
  } catch (const std::exception& failure) {  // out of memory
    return error(source, ": cannot read the template: ", failure.what());
  }
}

Result<std::string> Template::render(const JsonObject& context, const Limits& limits,
                                     std::optional<std::time_t> now) const {
  Heap heap(limits);
  Evaluator evaluator(heap, now.value_or(std::time(nullptr)));
  try {
    return evaluator.run(ast_->body, context);
  } catch (const Failure& failure) {
    return to_error(failure, source_, evaluator.line());
  } catch (const std::exception& failure) {  // out of memory
    return error(source_, " line ", evaluator.line(), ": ", failure.what());
  }
}

}  // namespace slip::jinja
