#include "slipstream/bench/serve_load.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "base/clock.h"

namespace slip {
namespace {

// Plain words: random tokens would make drafts look useless.
constexpr std::array<const char*, 48> kPromptWords = {
    "the",    "old",   "cat",    "walked",  "over",  "a",      "small", "bridge", "and",   "saw",
    "two",    "birds", "near",   "river",   "when",  "rain",   "began", "to",     "fall",  "on",
    "green",  "hills", "people", "talked",  "about", "their",  "long",  "day",    "in",    "town",
    "every",  "house", "had",    "windows", "with",  "warm",   "light", "some",   "boats", "moved",
    "slowly", "under", "stars",  "while",   "music", "played", "far",   "away"};

int64_t integer_at(const JsonObject& object, const char* key) {
  const Json* value = object.if_contains(key);
  return value && value->is_number() ? value->to_number<int64_t>() : 0;
}

const JsonObject* object_at(const JsonObject& object, const char* key) {
  const Json* value = object.if_contains(key);
  return value ? value->if_object() : nullptr;
}

// What a piece of a stream adds to the first choice; null: nothing.
const JsonObject* delta_of(const JsonObject& piece) {
  const Json* choices = piece.if_contains("choices");
  const JsonArray* list = choices ? choices->if_array() : nullptr;
  const Json* delta = list && !list->empty() ? member_of(&list->front(), "delta") : nullptr;
  return delta ? delta->if_object() : nullptr;
}

// Appends the texts under `keys` and says whether there were any.
bool append(const JsonObject& delta, std::initializer_list<const char*> keys, std::string& text) {
  const size_t before = text.size();
  for (const char* key : keys) text += text_or_empty(delta.if_contains(key));
  return text.size() > before;
}

// Reads the events of one answer into a sample.
class SampleReader {
 public:
  explicit SampleReader(Sample& sample) : sample_(sample) {}

  void add(std::string_view data) {
    if (data == "[DONE]") return;
    const Result<Json> parsed = parse_json(data, "event");
    if (!parsed.ok() || !parsed.value().is_object()) {
      sample_.failure = "an event is no JSON object";
      return;
    }
    const JsonObject& piece = parsed.value().get_object();
    if (const Json* failure = piece.if_contains("error")) sample_.failure = dump_json(*failure);
    if (const JsonObject* delta = delta_of(piece)) {
      const bool thinks = append(*delta, {"reasoning_content", "reasoning"}, sample_.thoughts);
      const bool answers = append(*delta, {"content"}, sample_.answer);
      if (thinks || answers) count_piece();
    }
    if (const JsonObject* usage = object_at(piece, "usage")) {
      sample_.prompt_tokens = integer_at(*usage, "prompt_tokens");
      sample_.tokens = integer_at(*usage, "completion_tokens");
      if (const JsonObject* details = object_at(*usage, "prompt_tokens_details"))
        sample_.cached_tokens = integer_at(*details, "cached_tokens");
    }
    if (const JsonObject* timings = object_at(piece, "timings")) {
      sample_.drafted = integer_at(*timings, "draft_n");
      sample_.accepted = integer_at(*timings, "draft_n_accepted");
    }
  }

  void finish() {
    if (!sample_.failure.empty()) return;
    if (!last_) sample_.failure = "the answer is empty";
    // Servers that do not count: one piece is usually one token.
    if (sample_.tokens == 0) sample_.tokens = int64_t(sample_.gaps.size()) + 1;
  }

 private:
  void count_piece() {
    const double now = clock_.seconds();
    if (last_) {
      sample_.gaps.push_back(now - *last_);
      sample_.decode_seconds = now - sample_.first_token_seconds;
    } else {
      sample_.first_token_seconds = now;
    }
    last_ = now;
  }

  Sample& sample_;
  Stopwatch clock_;
  std::optional<double> last_;
};

JsonObject message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

}  // namespace

std::string fresh_text(uint64_t seed, int64_t words) {
  std::mt19937_64 random(seed);
  std::string text = cat("Story ", seed % 1'000'000, ". ");
  constexpr int64_t kSentence = 12;
  for (int64_t i = 0; i < words; ++i) {
    text += kPromptWords[random() % kPromptWords.size()];
    text += i % kSentence == kSentence - 1 ? ". " : " ";
  }
  return text;
}

Sample ask(const LoadSettings& settings, const JsonArray& messages) {
  JsonObject body{{"model", settings.model},
                  {"messages", messages},
                  {"stream", true},
                  {"stream_options", JsonObject{{"include_usage", true}}},
                  {"max_tokens", settings.max_tokens},
                  {"min_tokens", settings.max_tokens},
                  {"temperature", settings.temperature}};
  if (settings.ignore_eos) body["ignore_eos"] = true;
  if (!settings.drafts) body["speculative.n_max"] = 0;
  Sample sample;
  EventReader events;
  SampleReader reader(sample);
  const Result<HttpResult> result = settings.server->call(
      {.method = "POST", .path = "/v1/chat/completions", .body = dump_json(body)},
      [&](std::string_view piece) {
        events.add(piece, [&](std::string_view data) { reader.add(data); });
      });
  if (!result.ok())
    sample.failure = result.failure().message;
  else if (result.value().status != 200)
    sample.failure =
        cat("status ", result.value().status, ": ", result.value().body.substr(0, 300));
  reader.finish();
  return sample;
}

int64_t PromptLengths::words(int64_t tokens) const {
  return std::max<int64_t>(1, std::llround((double(tokens) - overhead) / tokens_per_word));
}

Result<PromptLengths> learn_lengths(LoadSettings& settings, uint64_t seed) {
  constexpr int64_t kFew = 10, kMany = 110;
  const Sample few = ask(settings, {message("user", fresh_text(seed, kFew))});
  const Sample many = ask(settings, {message("user", fresh_text(seed + 1, kMany))});
  for (const Sample* sample : {&few, &many})
    if (!sample->failure.empty()) return error(sample->failure);
  settings.ignore_eos = std::min(few.tokens, many.tokens) < settings.max_tokens;
  const int64_t difference = many.prompt_tokens - few.prompt_tokens;
  if (difference <= 0) return PromptLengths{};  // the server does not count
  const double per_word = double(difference) / double(kMany - kFew);
  return PromptLengths{per_word, double(few.prompt_tokens) - per_word * double(kFew)};
}

LoadResult run_load(const LoadSettings& settings, int64_t users, int64_t rounds, uint64_t seed) {
  LoadResult result;
  result.users = users;
  std::mutex mutex;
  std::vector<std::thread> threads;
  const Stopwatch clock;
  for (int64_t user = 0; user < users; ++user) {
    threads.emplace_back([&, user] {
      for (int64_t round = 0; round < rounds; ++round) {
        const uint64_t own = seed * 1'000'003 + uint64_t(user * rounds + round);
        const std::string text =
            fresh_text(own, settings.prompt_words) + "\nGo on with this story.";
        Sample sample = ask(settings, {message("user", text)});
        const std::lock_guard lock(mutex);
        result.samples.push_back(std::move(sample));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  result.seconds = clock.seconds();
  return result;
}

Turns ask_twice(const LoadSettings& settings, uint64_t seed) {
  Turns turns;
  JsonArray messages{
      message("user", fresh_text(seed, settings.prompt_words) + "\nGo on with this story.")};
  turns.first = ask(settings, messages);
  // As chat clients send it back: most templates leave earlier thoughts out.
  JsonObject reply = message("assistant", turns.first.answer);
  if (!turns.first.thoughts.empty()) reply["reasoning_content"] = turns.first.thoughts;
  messages.push_back(std::move(reply));
  messages.push_back(message("user", "And then?"));
  turns.second = ask(settings, messages);
  return turns;
}

Result<std::string> first_model(const MeasuredServer& server) {
  SLIP_TRY(const HttpResult result, server.call({.path = "/v1/models"}));
  if (result.status != 200)
    return error("GET /v1/models: status ", result.status, ": ", result.body.substr(0, 300));
  SLIP_TRY(const Json json, parse_json(result.body, "/v1/models"));
  const Json* data = member_of(&json, "data");
  const JsonArray* list = data ? data->if_array() : nullptr;
  if (!list || list->empty()) return error("/v1/models lists no model");
  const std::string_view id = text_or_empty(member_of(&list->front(), "id"));
  if (id.empty()) return error("/v1/models lists a model without a name");
  return std::string(id);
}

}  // namespace slip
