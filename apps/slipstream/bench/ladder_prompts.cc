#include "slipstream/bench/ladder_prompts.h"

#include "base/json.h"

namespace slip {
namespace {

Result<LadderPrompt> prompt_from(const Json& json) {
  if (!json.is_object()) return error("expected an object, found ", describe_json_kind(json));
  LadderPrompt prompt;
  for (const auto& [key, value] : json.get_object()) {
    if ((key == "name" || key == "prompt") && value.is_string()) {
      (key == "name" ? prompt.name : prompt.prompt) = std::string(value.get_string());
    } else if (key == "max_tokens" && value.is_int64()) {
      prompt.max_tokens = value.get_int64();
    } else {
      return error("\"", std::string(key), "\" is ", describe_json_kind(value),
                   "; expected the strings name and prompt and the number max_tokens");
    }
  }
  if (prompt.name.empty()) return error("\"name\" is missing or empty");
  if (prompt.prompt.empty()) return error("\"prompt\" is missing or empty");
  // The first token comes from the prompt; the second is the first that takes a step.
  if (prompt.max_tokens < 2) return error("\"max_tokens\" must be a number of at least 2");
  return prompt;
}

}  // namespace

std::vector<LadderPrompt> recipe_prompts() {
  return {
      {"Q&A", "What are the main differences between TCP and UDP? Be concise.", 256},
      {"Code",
       "Write a Python function that implements binary search on a sorted list. Include type "
       "hints and docstring.",
       512},
      {"JSON",
       "Generate a JSON array of 10 fictional employees with fields: name, age, department, "
       "salary, email, skills (array of 3). Output ONLY valid JSON, no explanation.",
       1024},
      {"Math", "What is 7823 * 4519? Show only the answer.", 64},
      {"LongCode",
       "Write a complete Python implementation of a red-black tree with insert, delete, search, "
       "and in-order traversal. Include all rotation methods.",
       2048}};
}

std::vector<LadderPrompt> minnow_prompts() {
  return {{"Q&A", "Explain CSS flexbox.", 96},
          {"Code",
           "Write a Python function that finds an item in a sorted list with binary search.", 128},
          {"JSON",
           "Write a JSON list with name Sam, age 32, city Paris and job baker; name Ada, age 41, "
           "city Rome and job pilot; name Tom, age 27, city Oslo and job nurse.",
           160},
          {"Math", "What is 23 + 58?", 48},
          {"LongCode",
           "Write a C++ function that finds an item in a sorted list with binary search.", 200}};
}

Result<std::vector<LadderPrompt>> parse_ladder_prompts(const std::string& text,
                                                       const std::string& source) {
  SLIP_TRY(const Json json, parse_json(text, source));
  if (!json.is_array() || json.get_array().empty())
    return error(source, ": expected a list of prompts, found ",
                 json.is_array() ? "an empty one" : describe_json_kind(json));
  std::vector<LadderPrompt> prompts;
  for (const Json& item : json.get_array()) {
    Result<LadderPrompt> prompt = prompt_from(item);
    if (!prompt.ok())
      return std::move(prompt).failure().in(cat(source, ": prompt ", prompts.size() + 1));
    prompts.push_back(std::move(prompt).value());
  }
  return prompts;
}

}  // namespace slip
