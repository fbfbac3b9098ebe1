// No input may take quadratic time; and how fast ordinary text is.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/files.h"
#include "text/tokenizer.h"

namespace slip {
namespace {

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string repeated(std::string_view part, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += part;
  return text;
}

// A quadratic step over a megabyte takes minutes; linear ones take well under a second even with
// sanitizers on two busy cores.
TEST(TokenizerSpeed, NoInputIsQuadratic) {
  constexpr double kSeconds = 10;
  constexpr size_t kBytes = 1 << 20;
  const Tokenizer tokenizer = Tokenizer::load(SLIP_SOURCE_DIR "/models/minnow").value();
  std::string letters;
  uint32_t random = 1;
  while (letters.size() < kBytes) {
    random = random * 1664525u + 1013904223u;
    letters += char('a' + (random >> 16) % 26);
  }
  const std::pair<const char*, std::string> inputs[] = {
      {"one letter", repeated("a", kBytes)},
      {"random letters", letters},
      {"spaces", repeated(" ", kBytes)},
      {"spaces, then a letter", repeated(" ", kBytes) + "a"},
      {"line breaks and spaces", repeated("\n ", kBytes)},
      {"digits", repeated("7", kBytes)},
      {"punctuation", repeated("=-", kBytes)},
      {"a combining mark", repeated("\u0301", kBytes)},
      {"combining marks out of order", repeated("\u0301\u0323", kBytes)},
      {"letters that compose", repeated("e\u0301", kBytes)},
      {"Hangul vowels", repeated("\u1161", kBytes)},
      {"beginnings of an added token", repeated("<|im_", kBytes)},
      {"an added token", repeated("<|im_end|>", kBytes)},
      {"apostrophes", repeated("'", kBytes)},
      {"bytes that are no UTF-8", repeated("\xF0\x9F", kBytes)},
  };
  for (const auto& [name, text] : inputs) {
    std::vector<int32_t> ids;
    EXPECT_LT(seconds_of([&] { ids = tokenizer.encode(text); }), kSeconds) << name;
    EXPECT_LT(seconds_of([&] { tokenizer.decode(ids); }), kSeconds) << name;
  }
}

TEST(TokenizerSpeed, PrintsThroughputOnThisRepository) {
  const Tokenizer tokenizer = Tokenizer::load(SLIP_SOURCE_DIR "/models/minnow").value();
  std::string code;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SLIP_SOURCE_DIR "/src"))
    if (entry.is_regular_file()) code += read_text_file(entry.path()).value();
  ASSERT_GT(code.size(), 50000u);
  std::vector<int32_t> ids;
  const double seconds = seconds_of([&] { ids = tokenizer.encode(code); });
  std::printf("encode: %.1f MB/s over %zu bytes, %zu tokens\n", double(code.size()) / seconds / 1e6,
              code.size(), ids.size());
  EXPECT_EQ(tokenizer.decode(ids), code);
}

// encode() learns which tokens stand for themselves; under the thread sanitizer this proves that
// threads may share it.
TEST(Tokenizer, ManyThreadsMayShareOne) {
  const Tokenizer tokenizer = Tokenizer::load(SLIP_SOURCE_DIR "/models/minnow").value();
  const std::string text =
      repeated("The quick brown fox, \u65E5\u672C and e\u0301 <think>. ", 5000);
  std::vector<std::vector<int32_t>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = tokenizer.encode(text); });
  for (std::thread& thread : threads) thread.join();
  const std::vector<int32_t> expected = tokenizer.encode(text);
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace slip
