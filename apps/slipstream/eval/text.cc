// eval tokenize, eval detokenize, eval render: the text side, from standard input.
#include <cstdio>

#include "base/json.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/eval/eval.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace slip {
namespace {

// Only a model's name; weights are not touched.
class TextVerb : public Verb {
 public:
  TextVerb(const std::string& name, const std::string& summary) : flags_(name, summary) {
    flags_.option("-m,--model", &model_, "MODEL", "A folder or a repository id; default: minnow");
    flags_.flag("--json", &json_, "Print a JSON object (always on)");
  }
  Flags& flags() override { return flags_; }

 protected:
  static int print(const JsonObject& object) {
    std::printf("%s\n", dump_json(object).c_str());
    return 0;
  }

  Flags flags_;
  std::string model_;

 private:
  bool json_ = true;
};

class EvalTokenize : public TextVerb {
 public:
  EvalTokenize() : TextVerb("eval tokenize", "Print the token ids of the text on standard input") {}

  Result<int> run() override {
    SLIP_TRY(const std::filesystem::path folder, locate_model(model_));
    SLIP_TRY(const Tokenizer tokenizer, Tokenizer::load(folder));
    JsonArray ids;
    for (const int32_t id : tokenizer.encode(read_stdin())) ids.emplace_back(id);
    return print({{"ids", std::move(ids)}});
  }
};

class EvalDetokenize : public TextVerb {
 public:
  EvalDetokenize()
      : TextVerb("eval detokenize", "Print the text of the token ids on standard input") {
    flags_.flag("--skip-special", &skip_special_, "Leave special tokens out of the text");
  }

  Result<int> run() override {
    SLIP_TRY(const std::filesystem::path folder, locate_model(model_));
    SLIP_TRY(const Tokenizer tokenizer, Tokenizer::load(folder));
    SLIP_TRY(const Json json, parse_json(read_stdin(), "standard input"));
    // A list, or what eval tokenize prints.
    const Json* list = &json;
    if (json.is_object() && json.get_object().contains("ids")) list = &json.at("ids");
    if (!list->is_array())
      return error("standard input: expected a list of ids, found ", describe_json_kind(*list));
    SLIP_TRY(const std::vector<int32_t> ids, token_ids(list->get_array(), "standard input"));
    for (const int32_t id : ids)
      if (id >= tokenizer.vocab_size())
        return error("standard input: there is no token ", id, ": the vocabulary has ",
                     tokenizer.vocab_size());
    return print({{"text", tokenizer.decode(ids, skip_special_)}});
  }

 private:
  bool skip_special_ = false;
};

class EvalRender : public TextVerb {
 public:
  EvalRender() : TextVerb("eval render", "Print the prompt for the request on standard input") {
    flags_.footer(
        "The request is {\"messages\": [...], \"tools\": [...], \"flags\": {...}, "
        "\"add_generation_prompt\": true}; further keys are template variables too.");
  }

  Result<int> run() override {
    SLIP_TRY(const std::filesystem::path folder, locate_model(model_));
    SLIP_TRY(const ChatTemplate chat, ChatTemplate::load(folder));
    SLIP_TRY(const Json json, parse_json(read_stdin(), "standard input"));
    if (!json.is_object())
      return error("standard input: expected an object, found ", describe_json_kind(json));
    ChatTemplate::Request request;
    const auto take_list = [](const Json& value, const char* key, JsonArray& into) -> Status {
      if (value.is_null()) return {};
      if (!value.is_array())
        return error("standard input: ", key, ": expected a list, found ",
                     describe_json_kind(value));
      into = value.get_array();
      return {};
    };
    for (const auto& [key, value] : json.get_object()) {
      if (key == "messages") {
        SLIP_TRY_STATUS(take_list(value, "messages", request.messages));
      } else if (key == "tools") {
        SLIP_TRY_STATUS(take_list(value, "tools", request.tools));
      } else if (key == "flags" && value.is_object()) {
        for (const auto& [name, flag] : value.get_object()) request.flags[name] = flag;
      } else if (key == "add_generation_prompt" && value.is_bool()) {
        request.add_generation_prompt = value.get_bool();
      } else {
        request.flags[key] = value;
      }
    }
    Result<std::string> text = chat.render(request);
    if (!text.ok()) return std::move(text).failure().in("the template refuses this request");
    return print({{"text", text.value()}});
  }
};

}  // namespace

std::unique_ptr<Verb> make_eval_tokenize_verb() { return std::make_unique<EvalTokenize>(); }
std::unique_ptr<Verb> make_eval_detokenize_verb() { return std::make_unique<EvalDetokenize>(); }
std::unique_ptr<Verb> make_eval_render_verb() { return std::make_unique<EvalRender>(); }

}  // namespace slip
