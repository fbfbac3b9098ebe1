// Jinja templates: the part of the language that chat templates use, with the meaning that Jinja2
// gives it in the environment of Hugging Face (trim_blocks, lstrip_blocks, a sandbox in which
// nothing can be changed but namespaces; tojson, raise_exception, strftime_now, break, continue).
// Templates come from downloaded files, so every run has limits.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace slip::jinja {

struct Limits {
  // Nodes evaluated, and elements or bytes/32 worked on in built-ins. At most a few seconds: there
  // are published templates that look at all messages for each of them.
  size_t steps = 100'000'000;
  size_t output = 16u << 20;   // bytes of text
  size_t memory = 256u << 20;  // bytes of all intermediate values together
  size_t depth = 600;          // expressions, blocks, macros and values inside each other
};

struct Ast;

class Template {
 public:
  // `source` is the name in error messages: "chat_template.jinja line 12: ...".
  static Result<Template> parse(std::string_view text, const std::string& source);

  // The members of `context` are the variables. A failure that the template itself reports through
  // raise_exception() has that text alone as its message; one that is about "context" met a limit,
  // which less to render would not. `now` is for strftime_now(); the clock when absent.
  Result<std::string> render(const JsonObject& context, const Limits& limits = {},
                             std::optional<std::time_t> now = std::nullopt) const;

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

 private:
  Template(std::unique_ptr<const Ast> ast, std::string source);

  std::unique_ptr<const Ast> ast_;
  std::string source_;
};

}  // namespace slip::jinja
