// Tool calls as Gemma 4 writes them, parsed as the text arrives and turned into JSON:
//   <|tool_call>call:NAME{key:<|"|>text<|"|>,other:[1,{deep:true}]}<tool_call|>
// Keys may be quoted too, and all of it with JSON's quotes. Braces, brackets and the closing tag
// may be missing at the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tool_calls.h"

namespace slip {

class BraceCallParser final : public ToolCallParser {
 public:
  // `format` must outlive this.
  explicit BraceCallParser(const OutputFormat& format) : format_(format) {}

  Progress advance(std::string_view text, bool final, std::vector<OutputEvent>& events) override;

 private:
  enum class State { before, item, value, text, after };
  struct Container {
    bool is_list;
    bool has_items = false;
  };

  Progress read_start(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_item(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_key(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_value(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_json_text(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_bare_value(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_text(std::string_view text, bool final, std::vector<OutputEvent>& events);
  Progress read_after(std::string_view text, bool final);

  void begin_member(std::string_view key, std::vector<OutputEvent>& events);
  void open(bool is_list, std::vector<OutputEvent>& events);
  void close_innermost(std::vector<OutputEvent>& events);
  Progress end_call(size_t consumed, std::vector<OutputEvent>& events);

  const OutputFormat& format_;
  State state_ = State::before;
  std::vector<Container> open_;  // outermost first
};

}  // namespace slip
