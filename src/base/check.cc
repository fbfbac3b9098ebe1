#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace slip {

void fail_check(const std::string& message, SourceLocation where) {
  std::fprintf(stderr, "slipstream: internal error at %s:%u (%s): %s\n", where.file, where.line,
               where.function, message.c_str());
  std::abort();
}

}  // namespace slip
