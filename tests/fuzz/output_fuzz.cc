// Reads the input as what a model wrote: however it is cut into pieces, the same thoughts, content
// and calls come of it, and the arguments of calls are JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/json.h"
#include "text/output_parser.h"
#include "text/utf8.h"

namespace {

using slip::OutputEvent;
using slip::OutputParser;

const slip::JsonArray& tools() {
  static const slip::JsonArray kTools = slip::parse_json(R"([{"type": "function", "function": {
      "name": "f", "parameters": {"type": "object", "properties": {
        "text": {"type": "string"}, "count": {"type": "integer"}, "flag": {"type": "boolean"},
        "list": {"type": "array"}, "map": {"type": "object"},
        "maybe": {"type": ["string", "null"], "enum": ["a", "1", null]}}}}}])",
                                                         "tools")
                                            .value()
                                            .get_array();
  return kTools;
}

struct Form {
  const slip::OutputFormat& format;
  bool in_reasoning;
  OutputParser::Calls calls;
  bool cut_off;  // a limit ended the text
};

// Pieces of `step` bytes, all events joined where that makes no difference.
std::vector<OutputEvent> parse(std::string_view text, size_t step, const Form& form) {
  OutputParser parser(form.format, form.in_reasoning, tools(), form.calls);
  std::vector<OutputEvent> all;
  const auto add = [&](std::vector<OutputEvent> events) {
    for (OutputEvent& event : events) slip::add_event(all, std::move(event));
  };
  for (size_t at = 0; at < text.size(); at += step) add(parser.feed(text.substr(at, step)));
  if (form.cut_off) parser.cut_off();
  add(parser.finish());
  return all;
}

bool same(const std::vector<OutputEvent>& a, const std::vector<OutputEvent>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const OutputEvent& x, const OutputEvent& y) {
                      return x.kind == y.kind && x.text == y.text && x.index == y.index;
                    });
}

// Calls are numbered, do not mingle, and are whole.
void check_calls(const std::vector<OutputEvent>& events) {
  int calls = 0;
  bool open = false;
  std::string arguments;
  for (const OutputEvent& event : events) {
    switch (event.kind) {
      case OutputEvent::Kind::reasoning:
      case OutputEvent::Kind::content: break;
      case OutputEvent::Kind::tool_call_start:
        if (open || event.index != calls++) std::abort();
        open = true;
        arguments.clear();
        break;
      case OutputEvent::Kind::tool_call_arguments:
        if (!open || event.index != calls - 1) std::abort();
        arguments += event.text;
        break;
      case OutputEvent::Kind::tool_call_end:
        if (!open || event.index != calls - 1) std::abort();
        open = false;
        // What is not UTF-8 comes back as it is, and is no JSON then.
        if (slip::is_valid_utf8(arguments) && !slip::parse_json(arguments, "arguments").ok())
          std::abort();
        break;
    }
  }
  if (open) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t how = data[0];  // printable in the corpus
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr OutputParser::Calls kCalls[] = {
      OutputParser::Calls::anywhere, OutputParser::Calls::first, OutputParser::Calls::as_content};
  const Form form{(how & 1) != 0 ? slip::kGemmaOutput : slip::kQwenOutput, (how & 2) != 0,
                  kCalls[(how >> 2) % 3], (how & 64) != 0};
  const std::vector<OutputEvent> whole = parse(text, text.size() + 1, form);
  if (!form.cut_off) check_calls(whole);  // the last one may then be open
  if (!same(whole, parse(text, 1, form))) std::abort();
  if (!same(whole, parse(text, 2 + how % 13, form))) std::abort();
  return 0;
}
