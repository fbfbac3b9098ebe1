// A service on a small model, and listeners that write down what they hear.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/generate.h"
#include "engine/service.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {

class Listener : public RequestListener {
 public:
  // Called with every token, on the service's thread.
  std::function<void(const TokenEvent&)> on_each;

  void on_prompt(int64_t done, int64_t) override { prompt_steps.push_back(done); }
  void on_token(const TokenEvent& event) override {
    ids.push_back(event.id);
    text += event.text;
    events.push_back(event);
    if (on_each) on_each(event);
  }
  void on_finish(const RequestSummary& heard) override {
    const std::lock_guard lock(mutex_);
    summary = heard;
    text += heard.text;
    ++finishes;
    finished_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return finishes > 0; });
  }

  bool finished() {
    const std::lock_guard lock(mutex_);
    return finishes > 0;
  }

  // To be read after wait().
  std::vector<int32_t> ids;
  std::string text;
  std::vector<TokenEvent> events;
  std::vector<int64_t> prompt_steps;
  RequestSummary summary;
  int finishes = 0;

 private:
  std::mutex mutex_;
  std::condition_variable finished_;
};

struct Submitted {
  std::shared_ptr<Listener> listener;
  RequestId id{};
};

inline Submitted submit(Service& service, Request request,
                        std::function<void(const TokenEvent&)> on_each = {}) {
  Submitted submitted{std::make_shared<Listener>(), RequestId{}};
  submitted.listener->on_each = std::move(on_each);
  auto taken = service.submit(std::move(request), submitted.listener);
  EXPECT_EQ(taken.index(), 0u) << (taken.index() == 0 ? "" : std::get<Refusal>(taken).message);
  if (taken.index() == 0) submitted.id = std::get<RequestId>(taken);
  return submitted;
}

inline std::shared_ptr<Listener> answer(Service& service, Request request) {
  const Submitted submitted = submit(service, std::move(request));
  submitted.listener->wait();
  return submitted.listener;
}

inline Request greedy(std::vector<int32_t> prompt, int64_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

inline Request sampled(std::vector<int32_t> prompt, int64_t max_tokens, uint64_t seed) {
  Request request = greedy(std::move(prompt), max_tokens);
  request.sampling.temperature = 0.9f;
  request.sampling.top_k = 30;
  request.sampling.top_p = 0.95f;
  request.sampling.seed = seed;
  return request;
}

// Everything is given back: what is remembered counts as free.
inline void expect_all_free(const ServiceStats& stats) {
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.free_pages, stats.pages);
  EXPECT_EQ(stats.free_sequences, stats.sequences);
}

}  // namespace slip
