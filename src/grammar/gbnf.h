// Grammars in GBNF, the notation of llama.cpp: name ::= "text" [a-z] name (...) a | b, with * + ?
// {m,n} and # comments.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/rules.h"

namespace slip {

// What the rule "root" derives. A rule may not begin with itself.
Result<ExprId> add_gbnf(Rules& rules, std::string_view text);

}  // namespace slip
