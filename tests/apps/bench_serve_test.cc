#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slipstream/bench/serve_report.h"
#include "slipstream/serve/log.h"

namespace slip {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(BenchServe, ReadsUrls) {
  const auto at = [](const char* text) { return MeasuredServer::at(text, {}).value(); };
  EXPECT_EQ(at("http://localhost:8080").url().host, "localhost");
  EXPECT_EQ(at("http://localhost:8080").url().port, "8080");
  EXPECT_EQ(at("http://localhost:8080/v1/").path(), "");
  EXPECT_EQ(at("http://example.com/proxy/v1").path(), "/proxy");
  EXPECT_EQ(at("https://example.com").url().port, "443");
  EXPECT_EQ(at("http://[::1]:9").url().host, "::1");
  EXPECT_FALSE(MeasuredServer::at("ftp://example.com", {}).ok());
  EXPECT_FALSE(MeasuredServer::at("http://:80", {}).ok());
}

TEST(BenchServe, CutsEventsWhereverTheBytesAreCut) {
  const std::string stream =
      ": ping\n\ndata: {\"a\":1}\n\nevent: x\r\ndata:two\r\n\r\ndata: [DONE]\n\n";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    EventReader reader;
    std::vector<std::string> events;
    for (size_t at = 0; at < stream.size(); at += piece)
      reader.add(std::string_view(stream).substr(at, piece),
                 [&](std::string_view data) { events.emplace_back(data); });
    EXPECT_THAT(events, testing::ElementsAre("{\"a\":1}", "two", "[DONE]"));
  }
}

TEST(BenchServe, SpreadsAreOfRanks) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Spread spread = spread_of(values);
  EXPECT_EQ(spread.p50, 50);
  EXPECT_EQ(spread.p90, 90);
  EXPECT_EQ(spread.p99, 99);
  EXPECT_EQ(spread.most, 100);
  EXPECT_EQ(spread_of({7}).p50, 7);
  EXPECT_EQ(spread_of({}).most, 0);
}

LoadResult some_load() {
  LoadResult load;
  load.users = 2;
  load.seconds = 4;
  for (const double first : {0.1, 0.3}) {
    Sample sample;
    sample.first_token_seconds = first;
    sample.decode_seconds = 1;
    sample.gaps = {0.4, 0.6};
    sample.tokens = 21;
    sample.drafted = 10;
    sample.accepted = 5;
    load.samples.push_back(sample);
  }
  Sample failed;
  failed.failure = "status 429";
  load.samples.push_back(failed);
  return load;
}

TEST(BenchServe, RowsCountWhatCame) {
  const ServeRow row = row_of(some_load());
  EXPECT_EQ(row.requests, 3);
  EXPECT_EQ(row.failures, 1);
  EXPECT_EQ(row.tokens, 42);
  EXPECT_DOUBLE_EQ(row.total, 10.5);
  EXPECT_DOUBLE_EQ(row.per_user, 20);
  EXPECT_DOUBLE_EQ(row.first_token.most, 0.3);
  EXPECT_DOUBLE_EQ(*row.acceptance, 0.5);
  EXPECT_DOUBLE_EQ(row.unevenness(), 1.5);
  Turns turns;
  turns.first.first_token_seconds = 2;
  turns.second.first_token_seconds = 0.5;
  turns.second.cached_tokens = 90;
  turns.second.prompt_tokens = 100;
  const PrefixRow prefix = row_of({turns});
  EXPECT_DOUBLE_EQ(prefix.second_turn, 0.5);
  EXPECT_DOUBLE_EQ(prefix.share(), 0.25);
  EXPECT_EQ(prefix.cached_tokens, 90);
}

TEST(BenchServe, ReportsAsTableJsonAndPicture) {
  ServeReport report;
  report.model = "a<b";
  report.rows = {row_of(some_load()), row_of(some_load())};
  report.rows[1].users = 8;
  report.plain.total = 4.2;
  EXPECT_THAT(report.table(), HasSubstr("2.50"));
  EXPECT_DOUBLE_EQ(report.json().at("rows").at(1).at("gain").to_number<double>(), 2.5);
  EXPECT_THAT(report.table(), HasSubstr("50 %"));
  EXPECT_THAT(report.table(), HasSubstr("status 429"));
  EXPECT_EQ(report.json().at("rows").as_array().size(), 2u);
  const std::string svg = report.svg();
  EXPECT_THAT(svg, HasSubstr("a&lt;b"));
  EXPECT_THAT(svg, Not(HasSubstr("a<b")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

TEST(BenchServe, PromptsAreAsLongAsTheServerCountsThem) {
  const PromptLengths lengths{.tokens_per_word = 1.25, .overhead = 20};
  EXPECT_EQ(lengths.words(1020), 800);
  EXPECT_EQ(lengths.words(3), 1);
}

TEST(BenchServe, FreshTextIsFresh) {
  EXPECT_EQ(fresh_text(1, 50), fresh_text(1, 50));
  EXPECT_NE(fresh_text(1, 50).substr(0, 40), fresh_text(2, 50).substr(0, 40));
}

TEST(ServeLog, ShowsNumbersAndNoControlCharacters) {
  HttpRecord record;
  record.method = "POST";
  record.path = "/v1/\n\x1b[31mfake" + std::string(1000, 'x') + "\xff";
  record.status = 200;
  record.usage = {.prompt = 10, .cached = 4, .generated = 20, .decode_seconds = 2};
  record.id = "req-1";
  const std::string line = ServeLog::text_of(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_LT(line.size(), 400u);
  EXPECT_THAT(line, HasSubstr("prompt 10 (4 cached), 20 tokens, 10.0 tok/s"));
  EXPECT_EQ(ServeLog::json_of(record).at("cached_tokens").to_number<int>(), 4);
}

}  // namespace
}  // namespace slip
