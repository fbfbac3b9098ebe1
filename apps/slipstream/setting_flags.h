// The library names what could be set differently; here it gets the name of a flag.
#pragma once

#include <string>

#include "base/result.h"

namespace slip {

// The message, and the flag that sets what it is about.
std::string explain(const Error& error);

}  // namespace slip
