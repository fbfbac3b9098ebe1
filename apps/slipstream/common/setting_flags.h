// The library names what could be set differently; here it gets the name of a flag.
#pragma once

#include <string>

#include "base/result.h"

namespace slip {

// The message, and what to do about what it is about.
std::string explain(const Error& error);

// A failure of a context that something else than --ctx asked for: `advice` says what to change
// instead; null: there is no flag for it.
Error advise_on_context(Error failure, const char* advice);

}  // namespace slip
