#include "grammar/regex.h"

#include "tests/grammar/answers.h"
#include "tests/grammar/std_regex.h"

namespace slip {
namespace {

struct Case {
  const char* pattern;
  std::vector<const char*> valid;
  std::vector<const char*> invalid;
};

TEST(Regex, Table) {
  const Case cases[] = {
      {"abc", {"abc"}, {"", "ab", "abcd"}},
      {"^abc$", {"abc"}, {"abcd"}},
      {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
      {"(?:ab)+(?<name>c?)", {"ab", "ababc"}, {"", "abcc"}},
      {"a{2}b{1,3}c{2,}", {"aabcc", "aabbbcccc"}, {"abcc", "aabbbbcc", "aabc"}},
      {"a{0}b", {"b"}, {"ab"}},
      {"x{,2}", {"x{,2}"}, {"xx"}},
      {"a{1}{2}", {"aa"}, {"a"}},
      {"a*?b+?c??", {"b", "aabbc"}, {"ac"}},
      {"[a-cx\\-]+", {"a-x"}, {"d", ""}},
      {"[^a-z]", {"A", "é", "😀", "\n"}, {"a", "AA", "\xff"}},
      {"[\\]\\d\\s-]+", {"] 1-"}, {"a"}},
      {"[]a]", {}, {}},
      {".", {"a", "é", "😀", "\t"}, {"\n", "ab", "\xf0\x9f"}},
      {"\\d+\\.\\w*\\s\\S", {"12.a_ x", "1.\t-"}, {"a.b c", "1. \n"}},
      {"\\x41\\u00e9\\u{1F600}\\cJ\\/\\.", {"Aé😀\n/."}, {"Aé😀\n/x"}},
      {"\\p{L}+\\P{N}", {"Ωé!", "日本語語"}, {"Ω1", "1a"}},
      {"é+", {"éé"}, {"e\xcc\x81", "\xc3"}},
      {"((a|b)*c|d){2,3}", {"cd", "abcabcd", "ddd"}, {"d", "abab", "dddd"}},
      {"(a?)*b", {"b", "aaab"}, {"a"}},
      {"(a*)+", {"", "aaa"}, {"b"}},
      {"(a?){3}b", {"b", "ab", "aaab"}, {"aaaab"}},
      {"(^a$)", {"a"}, {"aa"}},
      {"^a|b$", {"a", "b"}, {"ab"}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.pattern);
    if (one.valid.empty() && one.invalid.empty()) {
      EXPECT_FALSE(try_constraint(regex_spec(one.pattern)).ok());
      continue;
    }
    for (const char* text : one.valid) EXPECT_TRUE(accepts(regex_spec(one.pattern), text)) << text;
    for (const char* text : one.invalid)
      EXPECT_FALSE(accepts(regex_spec(one.pattern), text)) << text;
  }
}

TEST(Regex, RefusesByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"(?=a)b", "lookahead"},
      {"(?!a)b", "lookahead"},
      {"(?<=a)b", "lookbehind"},
      {"(?<!a)b", "lookbehind"},
      {"(a)\\1", "back reference"},
      {"\\k<x>", "back reference"},
      {"\\bword\\b", "word boundar"},
      {"(?i)a", "flags"},
      {"a++", "possessive"},
      {"\\p{Script=Greek}", "property"},
      {"a(^b)", "anchor"},
      {"a$b", "anchor"},
      {"*a", "nothing to repeat"},
      {"(a", "missing ')'"},
      {"a)", "unmatched"},
      {"[a", "missing ']'"},
      {"[z-a]", "range"},
      {"a{3,2}", "reversed"},
      {"a{99999999}", "repetitions"},
      {"\\", "backslash"},
      {"[[:alpha:]]", "POSIX"},
      {"\\u12", "digits"},
      {"\\q", "escape"},
      {"\xff", "UTF-8"},
      {"(a*b*){2,9}", "may be empty"},
  };
  for (const auto& [pattern, name] : cases) {
    const auto made = try_constraint(regex_spec(pattern));
    ASSERT_FALSE(made.ok()) << pattern;
    EXPECT_NE(made.failure().message.find(name), std::string::npos)
        << pattern << ": " << made.failure().message;
  }
}

std::string random_pattern(std::mt19937& random, int depth) {
  const auto pick = [&](int count) { return int(random() % unsigned(count)); };
  const char* const atoms[] = {"a", "b", "c", "[ab]", "[^a]", ".", "\\w", "[b-d]"};
  std::string pattern;
  for (int i = 0, parts = 1 + pick(3); i < parts; ++i) {
    std::string atom = atoms[pick(8)];
    // What may be empty is not counted.
    bool may_be_empty = false;
    if (depth > 0 && pick(3) == 0) {
      atom = "(" + random_pattern(random, depth - 1) + ")";
      may_be_empty = std::regex_match("", std::regex(atom));
    }
    const char* const quantifiers[] = {"", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"};
    pattern += atom + quantifiers[pick(may_be_empty ? 5 : 8)];
  }
  if (pick(4) == 0) pattern += "|" + random_pattern(random, 0);
  return pattern;
}

TEST(Regex, AgreesWithTheStandardLibrary) {
  std::mt19937 random(21);
  int matches = 0;
  for (int round = 0; round < 250; ++round) {
    const std::string pattern = random_pattern(random, 1);
    SCOPED_TRACE(pattern);
    const std::regex standard(pattern);
    const std::unique_ptr<Constraint> start = constraint_of(regex_spec(pattern));
    ASSERT_TRUE(start);
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (int length = int(random() % 7); length > 0; --length) text += char('a' + random() % 4);
      const std::unique_ptr<Constraint> constraint = start->clone();
      const bool accepted =
          accepted_bytes(*constraint, text) == text.size() && constraint->allows(stop_id());
      ASSERT_EQ(accepted, std::regex_match(text, standard)) << text;
      matches += accepted;
    }
  }
  EXPECT_GT(matches, 300);
}

TEST(Regex, RandomAnswersMatch) {
  std::mt19937 random(22);
  int finished = 0;
  for (const char* pattern :
       {R"((\d{3}-){2}\d{4})", R"([A-Z][a-z]+(, [A-Z][a-z]+)*\.)",
        R"(<(b|i)>[ -;=?-~]{0,30}</(b|i)>)", "(yes|no|maybe)( (yes|no)){0,5}"}) {
    const std::regex standard(pattern);
    for (int i = 0; i < 20; ++i) {
      const std::unique_ptr<Constraint> constraint = constraint_of(regex_spec(pattern));
      const auto text = random_answer(*constraint, random, 200, {".", "</b>", "9"});
      if (!text) continue;
      ++finished;
      EXPECT_TRUE(std::regex_match(*text, standard)) << pattern << ": " << *text;
    }
  }
  EXPECT_GT(finished, 60);
}

}  // namespace
}  // namespace slip
