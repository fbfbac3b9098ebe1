#include "grammar/constraint.h"

#include <bit>

namespace slip {

int64_t TokenSet::size() const {
  int64_t count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
}

}  // namespace slip
