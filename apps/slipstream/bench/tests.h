// bench's tests: prompts and answers of some lengths, behind contexts of some depths.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "slipstream/bench/result.h"

namespace slip {

struct BenchTests {
  std::vector<int64_t> prompts, answers;  // lengths in tokens
  std::vector<int64_t> depths;            // tokens that the context holds before a test begins
  std::optional<int64_t> users;           // that decode at once; none: one, whose context is read
  int64_t repeat = 3;                     // runs of each, whose median is reported
  int64_t int8_factors = 2;               // ModelFlags::int8_factors()

  // Positions that a sequence needs for all of them.
  int64_t context() const;
};

// `done` is shown every row as it comes. The engine was loaded for so many sequences and rows of
// logits as there are users.
Result<std::vector<BenchRow>> run_tests(Engine& engine, const BenchTests& tests,
                                        const std::function<void(const BenchRow&)>& done);

}  // namespace slip
