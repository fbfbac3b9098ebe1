#include "server/metrics.h"

#include <algorithm>

#include "base/json_dump.h"

namespace slip {
namespace {

// vLLM's bounds, so that its dashboards and alerts fit.
const std::vector<double> kFirstTokenBounds = {0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                               0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                               20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
const std::vector<double> kTokenBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                          0.15,  0.2,    0.3,   0.4,  0.5,   0.75, 1.0,   2.5,
                                          5.0,   7.5,    10.0,  20.0, 40.0,  80.0};
const std::vector<double> kRequestBounds = {0.05, 0.1,   0.3,   0.5,   0.8,   1.0,   1.5,  2.0,
                                            2.5,  5.0,   10.0,  15.0,  20.0,  30.0,  40.0, 50.0,
                                            60.0, 120.0, 240.0, 480.0, 960.0, 1920.0};
const std::vector<double> kCountBounds = {1,    2,    5,    10,    20,    50,    100,    200,   500,
                                          1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};

std::string escaped_label(const std::string& text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '\\' || byte == '"') out += '\\';
    if (byte == '\n')
      out += "\\n";
    else
      out += byte;
  }
  return out;
}

void expose_head(std::string& out, const std::string& name, const char* type,
                 const std::string& help) {
  out += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void expose_value(std::string& out, const std::string& name, const std::string& labels,
                  double value) {
  out += cat(name, "{", labels, "} ", format_double(value), "\n");
}

void add_to(std::atomic<double>& sum, double value) {
  double before = sum.load(std::memory_order_relaxed);
  while (!sum.compare_exchange_weak(before, before + value, std::memory_order_relaxed)) {
  }
}

double share(int64_t part, int64_t whole) { return whole > 0 ? double(part) / double(whole) : 0; }

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)),
      counts_(std::make_unique<std::atomic<int64_t>[]>(bounds_.size() + 1)) {}

void Histogram::observe(double value) {
  const auto place = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  counts_[size_t(place)].fetch_add(1, std::memory_order_relaxed);
  add_to(sum_, value);
}

void Histogram::expose(std::string& out, const std::string& name, const std::string& help,
                       const std::string& labels) const {
  expose_head(out, name, "histogram", help);
  int64_t below = 0;
  for (size_t i = 0; i <= bounds_.size(); ++i) {
    below += counts_[i].load(std::memory_order_relaxed);
    const std::string bound = i < bounds_.size() ? format_double(bounds_[i]) : "+Inf";
    out += cat(name, "_bucket{", labels, ",le=\"", bound, "\"} ", below, "\n");
  }
  expose_value(out, name + "_sum", labels, sum_.load(std::memory_order_relaxed));
  out += cat(name, "_count{", labels, "} ", below, "\n");
}

Metrics::Metrics(const std::string& model_name)
    : labels_(cat("model_name=\"", escaped_label(model_name), "\"")),
      first_token_(kFirstTokenBounds),
      token_gap_(kTokenBounds),
      per_token_(kTokenBounds),
      whole_(kRequestBounds),
      queue_(kRequestBounds),
      prompt_(kRequestBounds),
      decode_(kRequestBounds),
      prompt_tokens_(kCountBounds),
      generated_tokens_(kCountBounds) {}

void Metrics::token_gap(double seconds) { token_gap_.observe(seconds); }

void Metrics::finished(const RequestSummary& summary) {
  Ending ending = abort;
  switch (summary.finish) {
    case FinishReason::stop_token:
    case FinishReason::stop_string: ending = stop; break;
    case FinishReason::max_tokens:
    case FinishReason::context_full: ending = length; break;
    case FinishReason::cancelled: ending = summary.failure ? failed : abort; break;
  }
  endings_[ending].fetch_add(1, std::memory_order_relaxed);
  queue_.observe(summary.queue_seconds);
  prompt_tokens_.observe(double(summary.prompt_tokens));
  generated_tokens_.observe(double(summary.tokens));
  whole_.observe(summary.queue_seconds + summary.prompt_seconds + summary.decode_seconds);
  if (summary.tokens == 0) return;
  prompt_.observe(summary.prompt_seconds);
  decode_.observe(summary.decode_seconds);
  first_token_.observe(summary.queue_seconds + summary.prompt_seconds);
  if (summary.tokens > 1) per_token_.observe(summary.decode_seconds / double(summary.tokens - 1));
}

void Metrics::http_status(int status) {
  status_classes_[size_t(std::clamp(status / 100, 0, 5))].fetch_add(1, std::memory_order_relaxed);
}

std::string Metrics::expose(const ServiceStats& stats) const {
  std::string out;
  const auto single = [&](const char* name, const char* type, const char* help, double value) {
    expose_head(out, name, type, help);
    expose_value(out, name, labels_, value);
  };
  single("vllm:num_requests_running", "gauge", "Requests that are being computed",
         double(stats.running));
  single("vllm:num_requests_waiting", "gauge", "Requests in the queue", double(stats.waiting));
  single("vllm:kv_cache_usage_perc", "gauge",
         "Share of the pages of the KV cache in use, from 0 to 1",
         share(stats.pages - stats.free_pages, stats.pages));
  single("vllm:prefix_cache_queries_total", "counter",
         "Prompt tokens looked up in the prefix cache", double(stats.prompt_tokens));
  single("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache",
         double(stats.cached_prompt_tokens));
  single("vllm:num_preemptions_total", "counter",
         "Requests set back to the queue because the cache was full", double(stats.preemptions));
  single("vllm:prompt_tokens_total", "counter", "Prompt tokens of all requests that were taken",
         double(stats.prompt_tokens));
  single("vllm:generation_tokens_total", "counter", "Tokens generated",
         double(stats.generated_tokens));
  single("vllm:spec_decode_num_drafts_total", "counter",
         "Drafts verified, each of one or more tokens", double(stats.drafts));
  single("vllm:spec_decode_num_draft_tokens_total", "counter", "Tokens drafted",
         double(stats.draft_tokens));
  single("vllm:spec_decode_num_accepted_tokens_total", "counter", "Drafted tokens accepted",
         double(stats.accepted_tokens));
  const std::string per_place = "vllm:spec_decode_num_accepted_tokens_per_pos_total";
  expose_head(out, per_place, "counter", "Drafted tokens accepted, by position in the draft");
  for (size_t i = 0; i < stats.accepted_at.size(); ++i)
    expose_value(out, per_place, cat(labels_, ",position=\"", i, "\""),
                 double(stats.accepted_at[i]));

  const std::string ended = "vllm:request_success_total";
  constexpr std::array<const char*, kEndings> kEndingNames = {"stop", "length", "abort", "error"};
  expose_head(out, ended, "counter", "Answers that ended, by reason");
  for (size_t i = 0; i < kEndings; ++i)
    expose_value(out, ended, cat(labels_, ",finished_reason=\"", kEndingNames[i], "\""),
                 double(endings_[i].load(std::memory_order_relaxed)));
  first_token_.expose(out, "vllm:time_to_first_token_seconds",
                      "Seconds from the arrival of a request to its first token", labels_);
  token_gap_.expose(out, "vllm:inter_token_latency_seconds",
                    "Seconds between one token of an answer and the next", labels_);
  per_token_.expose(out, "vllm:request_time_per_output_token_seconds",
                    "Mean seconds per token after the first, of each request", labels_);
  whole_.expose(out, "vllm:e2e_request_latency_seconds",
                "Seconds from the arrival of a request to its last token", labels_);
  queue_.expose(out, "vllm:request_queue_time_seconds", "Seconds that requests waited in the queue",
                labels_);
  prompt_.expose(out, "vllm:request_prefill_time_seconds",
                 "Seconds from the start of a request to its first token", labels_);
  decode_.expose(out, "vllm:request_decode_time_seconds",
                 "Seconds from the first token of an answer to the last", labels_);
  prompt_tokens_.expose(out, "vllm:request_prompt_tokens", "Tokens in the prompt of a request",
                        labels_);
  generated_tokens_.expose(out, "vllm:request_generation_tokens",
                           "Tokens in the answer to a request", labels_);

  single("slipstream:remembered_pages", "gauge",
         "Pages of the KV cache that hold prefixes for reuse", double(stats.remembered_pages));
  single("slipstream:sequences_in_use", "gauge", "Sequence slots in use",
         double(stats.sequences - stats.free_sequences));
  single("slipstream:sequences", "gauge",
         "Sequence slots, one for each answer that can be computed at once",
         double(stats.sequences));
  single("slipstream:steps_total", "counter", "Steps of the engine: passes through the model",
         double(stats.steps));
  const std::string requests = "slipstream:http_requests_total";
  expose_head(out, requests, "counter",
              "HTTP requests by class of status; 4xx includes clients that left early (499)");
  for (size_t i = 2; i < status_classes_.size(); ++i)
    expose_value(out, requests, cat(labels_, ",status=\"", i, "xx\""),
                 double(status_classes_[i].load(std::memory_order_relaxed)));
  return out;
}

}  // namespace slip
