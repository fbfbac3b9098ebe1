#include "text/jinja.h"

#include <gtest/gtest.h>

#include "base/files.h"

namespace slip::jinja {
namespace {

Result<std::string> render(const std::string& text, const JsonObject& context = {},
                           const Limits& limits = {}) {
  SLIP_TRY(const Template parsed, Template::parse(text, "chat_template.jinja"));
  return parsed.render(context, limits, 86400 * 365);
}

std::string rendered(const std::string& text, const JsonObject& context = {}) {
  const Result<std::string> result = render(text, context);
  return result.ok() ? result.value() : "error: " + result.failure().message;
}

std::string failure_of(const std::string& text, const Limits& limits = {}) {
  const Result<std::string> result = render(text, {}, limits);
  return result.ok() ? "no failure" : result.failure().message;
}

bool mentions(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

// Made with Jinja2 3.1.6 in the environment that transformers sets up.
TEST(Jinja, AgreesWithJinja2) {
  const std::string path = SLIP_SOURCE_DIR "/tests/data/chat/jinja_cases.json";
  const Json file = parse_json(read_text_file(path).value(), path).value();
  const JsonObject& context = file.at("context").get_object();
  ASSERT_GE(file.at("cases").get_array().size(), 60u);
  for (const Json& entry : file.at("cases").get_array()) {
    const std::string text(entry.at("template").get_string());
    const Result<std::string> result = render(text, context);
    if (entry.get_object().contains("fails")) {
      EXPECT_FALSE(result.ok()) << text << "\ngave " << result.value();
    } else {
      ASSERT_TRUE(result.ok()) << text << "\nfailed: " << result.failure().message;
      EXPECT_EQ(result.value(), entry.at("expect").get_string()) << text;
    }
  }
}

TEST(Jinja, ErrorsNameTheLine) {
  EXPECT_EQ(failure_of("a\nb\n{{ 1 +\n missing.x }}"),
            "chat_template.jinja line 4: 'missing' is undefined");
  EXPECT_EQ(failure_of("a\n\n{% if x %}\n"),
            "chat_template.jinja line 3: {% if %} of line 3 is not closed");
  EXPECT_EQ(failure_of("\n{{ 'a' + 1 }}"),
            "chat_template.jinja line 2: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(failure_of("{% include 'x' %}"),
            "chat_template.jinja line 1: unknown or unsupported tag 'include'");
}

TEST(Jinja, AFailureAfterAMacroCallNamesTheCallersLine) {
  EXPECT_TRUE(mentions(failure_of("{% macro m() %}\nx\n{% endmacro %}\n{{ m() + 1 }}"), "line 4"));
}

TEST(Jinja, RaisedMessagesComeBackAsTheyAre) {
  EXPECT_EQ(failure_of("\n{{ raise_exception('No ' ~ 'user.') }}"), "No user.");
}

TEST(Jinja, StrftimeNowUsesTheGivenClock) {
  EXPECT_EQ(rendered("{{ strftime_now('%Y') }}"), "1971");
}

TEST(Jinja, GenerationTagsAreTransparent) {
  EXPECT_EQ(rendered("a{% generation %}b{{ 1 }}{% endgeneration %}c"), "ab1c");
}

TEST(Jinja, NothingButNamespacesCanBeChanged) {
  EXPECT_TRUE(mentions(failure_of("{% set x = [] %}{{ x.append(1) }}"), "unsafe"));
  EXPECT_TRUE(mentions(failure_of("{% set x = {} %}{{ x.update(a=1) }}"), "unsafe"));
  EXPECT_TRUE(mentions(failure_of("{% set x = {} %}{% set x.a = 1 %}"), "non-namespace"));
}

TEST(Jinja, StepsAreLimited) {
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  const Limits limits{.steps = 2'000'000};
  EXPECT_TRUE(mentions(failure_of(loops, limits), "steps"));
  // Comparing a value that contains itself many times over would take 2^60 steps.
  std::string doubled = "{% set x = [1] %}{% set y = [1] %}";
  for (int i = 0; i < 60; ++i) doubled += "{% set x = [x, x] %}{% set y = [y, y] %}";
  EXPECT_TRUE(mentions(failure_of(doubled + "{{ x == y }}", limits), "steps"));
}

TEST(Jinja, WhatMeetsALimitForItsSizeIsAboutTheContext) {
  const std::string text = "{% for x in xs %}{{ x }}{% endfor %}";
  const JsonObject context = {{"xs", JsonArray(300, "abc")}};
  for (const Limits& limits : {Limits{.steps = 100}, Limits{.output = 100}, Limits{.memory = 1000}})
    EXPECT_STREQ(render(text, context, limits).failure().setting, "context");
  EXPECT_EQ(render(text, context, {.depth = 1}).failure().setting, nullptr);
  EXPECT_EQ(render("{{ raise_exception('no') }}", context).failure().setting, nullptr);
}

TEST(Jinja, TheLengthOfAListIsOneStep) {
  const JsonObject context = {{"xs", JsonArray(3000, "abc")}};
  const std::string text = "{% for x in xs %}{{ xs|length }}{{ xs|count }}{% endfor %}";
  EXPECT_TRUE(render(text, context, {.steps = 100'000}).ok());
}

TEST(Jinja, RoundsOfALoopShareTheirMemory) {
  const std::string loop = "{% for i in range(9999) %}{% set x = i %}{% endfor %}";
  EXPECT_TRUE(render(loop, {}, {.memory = 1u << 20}).ok());
  // But for those that a macro can still see.
  EXPECT_EQ(rendered("{% set ns = namespace(all=[]) %}{% for i in [1, 2, 3] %}{% set x = i * 2 %}"
                     "{% macro m() %}{{ x }}{% endmacro %}{% set ns.all = ns.all + [m] %}"
                     "{% endfor %}{% for m in ns.all %}{{ m() }}{% endfor %}"),
            "246");
}

TEST(Jinja, OutputIsLimited) {
  EXPECT_TRUE(
      mentions(failure_of("{% for a in range(99) %}0123456789{% endfor %}", {.output = 500}),
               "output is larger than 500"));
}

TEST(Jinja, MemoryIsLimited) {
  std::string doubled = "{% set x = 'abcdefgh' %}";
  for (int i = 0; i < 40; ++i) doubled += "{% set x = x ~ x %}";
  EXPECT_TRUE(mentions(failure_of(doubled), "bytes"));
  EXPECT_TRUE(mentions(failure_of("{{ 'x' * 99999999999 }}"), "too often"));
  EXPECT_TRUE(mentions(failure_of("{{ ('x' * 99999).replace('x', 'y' * 99999) }}"), "bytes"));
  EXPECT_TRUE(mentions(failure_of("{{ '%2000s' % 'x' }}"), "not supported"));
}

TEST(Jinja, DepthIsLimitedWhereverTextCanNest) {
  const auto repeat = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  EXPECT_TRUE(
      mentions(failure_of("{{ " + repeat("(", 50000) + "1" + repeat(")", 50000) + " }}"), "deep"));
  EXPECT_TRUE(
      mentions(failure_of("{{ " + repeat("[", 50000) + repeat("]", 50000) + " }}"), "deep"));
  EXPECT_TRUE(mentions(failure_of("{{ " + repeat("not ", 50000) + "1 }}"), "deep"));
  EXPECT_TRUE(mentions(failure_of("{{ " + repeat("-", 50000) + "1 }}"), "deep"));
  EXPECT_TRUE(mentions(failure_of("{{ 1" + repeat(" if 1 else 1", 50000) + " }}"), "deep"));
  EXPECT_TRUE(mentions(failure_of("{{ 1" + repeat(" + 1", 50000) + " }}"), "deep"));
  EXPECT_TRUE(mentions(failure_of("{{ 1" + repeat("|abs", 50000) + " }}"), "deep"));
  EXPECT_TRUE(mentions(failure_of("{{ a" + repeat(".a", 50000) + " }}"), "deep"));
  EXPECT_TRUE(mentions(failure_of(repeat("{% if 1 %}", 50000)), "deep"));
  EXPECT_TRUE(mentions(failure_of("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "deep"));
  const std::string nested =
      "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}"
      "{% set ns.x = [ns.x] %}{% endfor %}";
  EXPECT_TRUE(mentions(failure_of(nested + "{{ ns.x }}"), "deep"));
  EXPECT_TRUE(mentions(failure_of(nested + "{{ ns.x|tojson }}"), "deep"));
  EXPECT_TRUE(mentions(failure_of(nested + "{{ ns.x == [ns.x] }}"), "deep"));
}

TEST(Jinja, ANamespaceMayContainItself) {
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me.me is defined }}"),
            "True");
}

}  // namespace
}  // namespace slip::jinja
