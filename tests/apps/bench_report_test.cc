// What bench prints of what it measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/ref/ref_ops.h"
#include "slipstream/bench/report.h"
#include "slipstream/bench/tests.h"

namespace slip {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Four users at 50 steps per second: 10 GB/s of 20, and 1e9 products of 1e10.
BenchResult some_result() {
  BenchResult result{.model = "m"};
  result.roofs = {20e9, 1e10};
  result.rows.push_back({.test = "pp512", .tokens_per_second = 3000});
  result.rows.push_back({.test = "tg128x4",
                         .depth = 1024,
                         .tokens_per_second = 200,
                         .tokens_per_step = 4,
                         .bytes_per_step = 200'000'000,
                         .int8_products_per_step = 20'000'000});
  return result;
}

Backend some_backend() {
  Backend backend;
  backend.pool = std::make_unique<ThreadPool>(1);
  backend.ops = make_ref_ops();
  backend.description = "test kernels";
  return backend;
}

TEST(BenchReport, SharesAreOfTheRoofs) {
  const BenchResult result = some_result();
  EXPECT_DOUBLE_EQ(result.share_of_bandwidth(result.rows[1]), 0.5);
  EXPECT_DOUBLE_EQ(result.share_of_int8_rate(result.rows[1]), 0.1);
  const JsonObject json = bench_json(result, some_backend());
  const JsonObject& decode = json.at("rows").at(1).as_object();
  EXPECT_DOUBLE_EQ(decode.at("gb_per_s").as_double(), 10);
  EXPECT_DOUBLE_EQ(decode.at("share_of_roof").as_double(), 0.5);
  EXPECT_EQ(decode.if_contains("projected_tokens_per_second"), nullptr);
  EXPECT_TRUE(json.at("rows").at(0).at("share_of_roof").is_null());
  EXPECT_DOUBLE_EQ(json.at("machine").at("read_bandwidth_gb_per_s").as_double(), 20);
}

TEST(BenchReport, PromptsHaveNoBytes) {
  EXPECT_EQ(bench_table(some_result(), TableStyle::csv),
            "model,test,depth,tok/s,MB/step,GB/s,% bandwidth,% int8 rate\n"
            "m,pp512,0,3000.0,,,,\n"
            "m,tg128x4,1024,200.0,200.0,10.0,50,10\n");
}

// Half of a step is memory's; where it reads twice as fast that takes half as long.
TEST(BenchReport, ProjectsWhatDecodes) {
  BenchResult result = some_result();
  result.there = ProjectedMachine{"box", "a box", 40e9};
  EXPECT_THAT(bench_table(result, TableStyle::plain), HasSubstr("box projected"));
  const JsonObject json = bench_json(result, some_backend());
  EXPECT_EQ(json.at("rows").at(0).as_object().if_contains("projected_tokens_per_second"), nullptr);
  EXPECT_NEAR(json.at("rows").at(1).at("projected_tokens_per_second").as_double(), 4 / 0.015, 1e-9);
  EXPECT_THAT(bench_remarks(result, some_backend()), HasSubstr("not a measurement"));
}

TEST(BenchReport, ARoofThatNeverBindsIsNotNamed) {
  BenchResult result = some_result();
  EXPECT_THAT(bench_remarks(result, some_backend()), HasSubstr("int8 products 10 G/s"));
  result.roofs.int8_products_per_second = INFINITY;
  EXPECT_THAT(bench_remarks(result, some_backend()), Not(HasSubstr("int8 products")));
}

TEST(BenchTests, NeedRoomForTheirLongest) {
  BenchTests tests{
      .prompts = {512}, .answers = {128, 600}, .depths = {0, 1024}, .users = std::nullopt};
  EXPECT_EQ(tests.context(), 1624);
  tests.users = 4;
  EXPECT_GT(tests.context(), 1624);
}

}  // namespace
}  // namespace slip
