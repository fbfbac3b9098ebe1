// Parses the input as a template and renders it over a fixed context under small limits.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json.h"
#include "text/jinja.h"

namespace {

const slip::JsonObject& context() {
  static const slip::JsonObject kContext =
      slip::parse_json(R"({"messages": [{"role": "system", "content": "Be brief."},
                           {"role": "user", "content": [{"type": "text", "text": "größe 日本"}]},
                           {"role": "assistant", "content": null, "tool_calls": [{"function":
                            {"name": "f", "arguments": {"a": 1, "b": [2.5, true, "x"]}}}]}],
                           "tools": null, "add_generation_prompt": true, "n": 7, "x": -1.5,
                           "s": "Hello, World", "xs": [3, 1, 2]})",
                       "context")
          .value()
          .get_object();
  return kContext;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const slip::Result<slip::jinja::Template> parsed = slip::jinja::Template::parse(text, "fuzz");
  if (!parsed.ok()) return 0;
  const slip::jinja::Limits limits{
      .steps = 20'000, .output = 1u << 16, .memory = 4u << 20, .depth = 200};
  (void)parsed.value().render(context(), limits, 0).ok();
  return 0;
}
