// Rules made ready to run: a small instruction set over bytes, in which every instruction knows
// whether, and how deep in calls, it can still reach its rule's end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/byte_set.h"
#include "grammar/rules.h"

namespace slip {

// Calls within calls. What would need more is never begun; a JSON value nests one call per level.
inline constexpr int kMaxCallDepth = 64;
inline constexpr size_t kMaxInstructions = 200'000;

struct Instruction {
  enum class Op : uint8_t {
    bytes,      // a byte of sets[other], then `next`
    fork,       // `next` or `other`
    call,       // the rule that starts at `other`, then `next`
    loop,       // loops[counter] says whether the body `next` or the rest `other` may follow
    loop_next,  // counts, then goes to `next`, its loop
    tag,        // the special token tags[counter], then `next`; or `other`, which spells it
    end,        // of the rule
  };
  Op op;
  bool nullable = false;  // call: the rule may be empty
  // fork, loop: bit k: any number (of a loop: as many as it still counts) of characters of
  // TextKind k leads back here, and more of them nowhere.
  uint8_t text_kinds = 0;
  bool free_text = false;  // special tokens may follow, and all others unless a tag has begun
  int32_t next = -1;
  int32_t other = -1;
  int32_t counter = -1;  // bytes, fork, call, loop_next: the loop it is inside of, or -1
  int32_t height = 0;    // calls within calls that it takes at least to reach the end
};

struct Loop {
  int32_t min;
  int32_t max;  // INT32_MAX: unbounded
};

struct Program {
  std::vector<Instruction> code;
  std::vector<ByteSet> sets;
  std::vector<Loop> loops;
  std::vector<std::string> tags;
  int32_t start = -1;
};

// `usable`: the bytes that can be written at all. Fails where a rule begins with itself, where no
// text at all fits, and where the limits do not suffice.
Result<Program> compile_rules(const Rules& rules, RuleId start, const ByteSet& usable);

}  // namespace slip
