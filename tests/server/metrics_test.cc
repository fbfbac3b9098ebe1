#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

namespace slip {
namespace {

using testing::HasSubstr;

TEST(Histogram, CountsUpToEachBound) {
  Histogram histogram({0.1, 1, 10});
  for (const double value : {0.05, 0.1, 0.5, 5.0, 50.0, 500.0}) histogram.observe(value);
  std::string text;
  histogram.expose(text, "h", "Some values", "a=\"b\"");
  EXPECT_EQ(text,
            "# HELP h Some values\n"
            "# TYPE h histogram\n"
            "h_bucket{a=\"b\",le=\"0.1\"} 2\n"
            "h_bucket{a=\"b\",le=\"1.0\"} 3\n"
            "h_bucket{a=\"b\",le=\"10.0\"} 4\n"
            "h_bucket{a=\"b\",le=\"+Inf\"} 6\n"
            "h_sum{a=\"b\"} 555.65\n"
            "h_count{a=\"b\"} 6\n");
}

TEST(Histogram, LosesNothingAmongThreads) {
  Histogram histogram({1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 10000; ++k) histogram.observe(2);
    });
  for (std::thread& thread : threads) thread.join();
  std::string text;
  histogram.expose(text, "h", "", "");
  EXPECT_THAT(text, HasSubstr("h_sum{} 80000.0\nh_count{} 40000\n"));
}

TEST(Metrics, ShowsAnswersAndTheService) {
  Metrics metrics("tiny \"one\"");
  RequestSummary summary;
  summary.finish = FinishReason::stop_token;
  summary.prompt_tokens = 30;
  summary.tokens = 11;
  summary.queue_seconds = 0.5;
  summary.prompt_seconds = 1.5;
  summary.decode_seconds = 2;
  metrics.finished(summary);
  summary.finish = FinishReason::max_tokens;
  metrics.finished(summary);
  summary = {};  // cancelled before its first token
  metrics.finished(summary);
  metrics.token_gap(0.2);
  metrics.http_status(200);
  metrics.http_status(499);

  ServiceStats stats;
  stats.running = 3;
  stats.waiting = 2;
  stats.pages = 8;
  stats.free_pages = 6;
  stats.prompt_tokens = 60;
  stats.cached_prompt_tokens = 20;
  stats.accepted_at = {7, 4};
  const std::string text = metrics.expose(stats);
  const auto has = [&](const std::string& name, const std::string& labels,
                       const std::string& value) {
    const std::string label = "model_name=\"tiny \\\"one\\\"\"" + labels;
    EXPECT_THAT(text, HasSubstr("\n" + name + "{" + label + "} " + value + "\n"));
  };
  has("vllm:num_requests_running", "", "3.0");
  has("vllm:num_requests_waiting", "", "2.0");
  has("vllm:kv_cache_usage_perc", "", "0.25");
  has("vllm:prefix_cache_queries_total", "", "60.0");
  has("vllm:prefix_cache_hits_total", "", "20.0");
  has("vllm:spec_decode_num_accepted_tokens_per_pos_total", ",position=\"1\"", "4.0");
  has("vllm:request_success_total", ",finished_reason=\"stop\"", "1.0");
  has("vllm:request_success_total", ",finished_reason=\"length\"", "1.0");
  has("vllm:request_success_total", ",finished_reason=\"abort\"", "1.0");
  has("vllm:time_to_first_token_seconds_sum", "", "4.0");
  has("vllm:time_to_first_token_seconds_count", "", "2");
  has("vllm:request_time_per_output_token_seconds_sum", "", "0.4");
  has("vllm:inter_token_latency_seconds_bucket", ",le=\"0.2\"", "1");
  has("vllm:e2e_request_latency_seconds_sum", "", "8.0");
  has("slipstream:http_requests_total", ",status=\"4xx\"", "1.0");
}

// The text format: every line is a comment or `name{labels} value`, and a name is explained once.
TEST(Metrics, IsWellFormed) {
  std::istringstream lines(Metrics("m").expose({}));
  std::map<std::string, int> explained;
  int values = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      const std::string name = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_EQ(++explained[name], 1) << line;
    } else if (!line.starts_with("# HELP ")) {
      EXPECT_THAT(line, testing::MatchesRegex("[a-z0-9_:]*\\{[^}]*\\} [0-9.e+-]*")) << line;
      ++values;
    }
  }
  EXPECT_GT(explained.size(), 25u);
  EXPECT_GT(values, 200);
}

}  // namespace
}  // namespace slip
