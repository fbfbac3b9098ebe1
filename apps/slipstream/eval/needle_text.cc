#include "slipstream/eval/needle_text.h"

#include <cctype>
#include <span>
#include <string_view>
#include <vector>

namespace slip {
namespace {

// SplitMix64: standard distributions differ between libraries, this does not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  size_t below(size_t sides) {
    uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return size_t((x ^ (x >> 31)) % sides);
  }
  std::string_view one_of(std::span<const std::string_view> words) {
    return words[below(words.size())];
  }

 private:
  uint64_t state_;
};

constexpr std::string_view kThings[] = {"lantern", "compass", "violin",  "umbrella", "kite",
                                        "drum",    "bell",    "scarf",   "basket",   "map",
                                        "key",     "boat",    "feather", "coin",     "blanket",
                                        "spoon",   "hat",     "book",    "ball",     "button"};
constexpr std::string_view kNeedleWords[] = {"river",  "stone",  "cloud",  "paper",  "window",
                                             "garden", "silver", "candle", "bridge", "winter",
                                             "letter", "ocean",  "forest", "mirror", "ticket",
                                             "island", "rocket", "pencil", "castle", "ladder"};
constexpr std::string_view kNames[] = {"Ada", "Ben",  "Cleo", "Finn", "Hana", "Ida",
                                       "Leo", "Mia",  "Nils", "Rosa", "Tess", "Uma",
                                       "Vic", "Wren", "Yara", "Zoe"};

// What {n}, {v} and {a} in the sentences below become.
constexpr std::string_view kNouns[] = {"queue",   "index",  "schema",  "parser",  "buffer",
                                       "worker",  "socket", "session", "request", "container",
                                       "cluster", "filter", "page",    "element", "module",
                                       "handler", "stream", "record",  "cache",   "gateway"};
constexpr std::string_view kVerbs[] = {"create", "update", "remove", "load",   "render",
                                       "select", "copy",   "check",  "resize", "publish"};
constexpr std::string_view kAdjectives[] = {"default",  "shared", "local",  "remote",  "optional",
                                            "external", "nested", "active", "pending", "temporary"};

// Documentation that documents nothing: no sentence answers the question.
constexpr std::string_view kSentences[] = {
    "The `{n}` property returns the {a} {n} of the current document.",
    "This page describes how to {v} a {n} and what happens when it is no longer needed.",
    "If no {n} is given, the {a} one is used instead.",
    "You can {v} more than one {n} at a time, but only the first of them becomes the {a} {n}.",
    "A {n} is closed when the last {n} that refers to it has been closed.",
    "Most applications never need to {v} the {a} {n} themselves.",
    "For more information, see the section about the {a} {n}.",
    "When a {n} fails, the {n} that started it receives an error and may try again.",
    "The following example shows how to {v} a {n} with only a few lines of code.",
    "Note that the order in which each {n} is visited is not specified.",
    "Before you {v} the {n}, make sure that the {a} {n} is still available.",
    "In older versions, a {a} {n} had to be registered by hand.",
    "The method takes two arguments: the {n} and a {a} value that is passed on unchanged.",
    "Changes to the {n} become visible to others after the {a} {n} has been written.",
    "There is one {n} for each {n}, and both are released together.",
    "It is recommended to {v} the {n} early, because a {a} {n} cannot be changed later.",
    "A {n} without a name is ignored by tools that {v} the {a} {n}.",
    "The value is a string, a number, or a list of both.",
    "Several teams use the {a} {n} to {v} what they share with one another.",
    "Use this setting to limit how often the {n} may {v} the {a} {n}.",
    "Unlike a {a} {n}, this {n} keeps its state between two calls.",
    "The {n} is read from left to right, and each part of it may be left out.",
    "Large projects often split the {n} into smaller parts, so that each {n} can be tested alone.",
    "Once the {a} {n} has started, it waits for a {n} and then begins to {v} it.",
    "A warning is shown if the {n} takes longer than expected.",
    "The size of the {n} depends on the {a} {n} and can be read at any time.",
    "This feature is not available in every environment, so a program should test for it first.",
    "To {v} a {n}, open the menu, choose the {a} {n} and confirm.",
    "Only the owner of a {n} is allowed to {v} it.",
    "The {a} {n} was introduced to make it easier to {v} a {n} from a script.",
    "Errors in the {n} are collected and reported together at the end.",
    "If you {v} the same {n} twice, the second call has no effect.",
    "Each {n} has a {a} counterpart, which is described in the next chapter.",
    "The {n} must not be empty, and it must not contain a {a} {n}.",
    "After a restart, the {n} is restored from the {a} {n}.",
    "This is useful when a {n} has to {v} something that a {a} {n} cannot reach.",
};

std::span<const std::string_view> words_for(char slot) {
  switch (slot) {
    case 'n': return kNouns;
    case 'v': return kVerbs;
    default: return kAdjectives;
  }
}

// Sentences say "a" before every slot; "an index" is made here.
std::string filled(std::string_view sentence, Dice& dice) {
  constexpr std::string_view kVowels = "aeio";
  std::string text;
  for (size_t i = 0; i < sentence.size(); ++i) {
    if (sentence[i] != '{') {
      text += sentence[i];
      continue;
    }
    const std::string_view word = dice.one_of(words_for(sentence[i + 1]));
    const bool vowel = kVowels.find(word[0]) != std::string_view::npos;
    if (vowel && (text == "A " || text.ends_with(" a "))) text.insert(text.size() - 1, "n");
    text += word;
    i += 2;  // "n}"
  }
  return text;
}

std::string make_secret(Dice& dice) {
  switch (dice.below(3)) {
    case 0: return cat(1000 + dice.below(9000));
    case 1: {
      const std::string first(dice.one_of(kNeedleWords));
      std::string second(dice.one_of(kNeedleWords));
      while (second == first) second = dice.one_of(kNeedleWords);
      return first + "-" + second;
    }
    default: return std::string(dice.one_of(kNames));
  }
}

// Sentences without end, in paragraphs.
class Filler {
 public:
  explicit Filler(uint64_t seed) : dice_(seed) {}

  // The first `count` sentences, with `needle` between the paragraphs that are nearest to `depth`.
  std::string text(size_t count, double depth, const std::string& needle) {
    while (sentences_.size() < count) add_sentence();
    size_t before = 0;
    while (before < count && (double(before) < depth * double(count) || !starts_paragraph_[before]))
      ++before;
    std::string text;
    for (size_t i = 0; i <= count; ++i) {
      if (i == before) text += (i > 0 ? "\n\n" : "") + needle;
      if (i == count) break;
      const bool paragraph = starts_paragraph_[i] || i == before;
      text += (text.empty() ? "" : paragraph ? "\n\n" : " ") + sentences_[i];
    }
    return text;
  }

 private:
  void add_sentence() {
    starts_paragraph_.push_back(sentences_.empty() || dice_.below(3) == 0);
    sentences_.push_back(filled(dice_.one_of(kSentences), dice_));
  }

  Dice dice_;
  std::vector<std::string> sentences_;
  std::vector<bool> starts_paragraph_;
};

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

}  // namespace

Result<NeedleText> make_needle_text(const NeedleRequest& request, const CountTokens& count) {
  Dice dice(request.seed);
  const std::string thing(dice.one_of(kThings));
  NeedleText result;
  result.secret = make_secret(dice);
  const std::string needle = "The secret of the " + thing + " is " + result.secret + ".";
  Filler filler(dice.below(SIZE_MAX));
  // Takes the text with this many sentences if it is short enough.
  const auto fits = [&](size_t sentences) -> Result<bool> {
    std::string message = filler.text(sentences, request.depth, needle) +
                          "\n\nWhat is the secret of the " + thing + "?";
    SLIP_TRY(const int64_t tokens, count(message));
    if (tokens > request.tokens) return false;
    result.message = std::move(message);
    result.tokens = tokens;
    return true;
  };
  SLIP_TRY(const bool room, fits(0));
  if (!room) return error("a prompt of ", request.tokens, " tokens has no room for the question");
  size_t fitting = 0, step = 1;
  for (bool grows = true; step > 0; step = grows ? step * 2 : step / 2) {
    SLIP_TRY(const bool taken, fits(fitting + step));
    if (taken) fitting += step;
    grows = grows && taken;
  }
  return result;
}

bool names_secret(const std::string& answer, const std::string& secret) {
  for (size_t at = answer.find(secret); at != std::string::npos; at = answer.find(secret, at + 1)) {
    const size_t end = at + secret.size();
    if ((at == 0 || !is_word_character(answer[at - 1])) &&
        (end == answer.size() || !is_word_character(answer[end])))
      return true;
  }
  return false;
}

}  // namespace slip
