// bench ops: every call of the model's own pass, with its rows and behind its context.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/e2e/process.h"

namespace slip::e2e {
namespace {

using ::testing::HasSubstr;

// How often a step calls an operation, by the table of the first number of rows.
int calls_of(const std::string& table, const std::string& operation) {
  const std::regex line("[\\d.]+ +(\\d+) .*  " + operation + "[^\\n]*");
  std::smatch found;
  return std::regex_search(table, found, line) ? std::stoi(found[1]) : 0;
}

// minnow: eight layers, two of which attend. The drafter has an attention layer of its own, which
// is shown what is behind; it is not to be taken for the model.
TEST(BenchOps, CountsTheCallsOfAModelsPass) {
  for (const char* depth : {"0", "100"}) {
    const Finished bench =
        run({"bench", "ops", "minnow", "--rows", "1,3", "--depth", depth, "--repeat", "1"});
    ASSERT_EQ(bench.status, 0) << bench.err;
    EXPECT_THAT(bench.out, HasSubstr("1 row\n"));
    EXPECT_THAT(bench.out, HasSubstr("3 rows\n"));
    EXPECT_EQ(calls_of(bench.out, "attention"), 2) << bench.out;
    EXPECT_EQ(calls_of(bench.out, "delta_net"), 6) << bench.out;
    EXPECT_EQ(calls_of(bench.out, "experts int4"), 8) << bench.out;
    EXPECT_EQ(calls_of(bench.out, "embed"), 1) << bench.out;
    const size_t draft = bench.out.find("\n1 draft\n");
    ASSERT_NE(draft, std::string::npos) << bench.out;
    EXPECT_EQ(calls_of(bench.out.substr(draft), "attention"), 1) << bench.out;
    EXPECT_EQ(calls_of(bench.out.substr(draft), "delta_net"), 0) << bench.out;
  }
}

TEST(BenchOps, RefusalsSayWhatToDo) {
  EXPECT_EQ(run({"bench", "ops", "minnow", "--rows", ""}).status, 2);
  const Finished many = run({"bench", "ops", "minnow", "--rows", "5000"});
  EXPECT_EQ(many.status, 1);
  EXPECT_THAT(many.err, HasSubstr("--rows takes 1 to "));
}

}  // namespace
}  // namespace slip::e2e
