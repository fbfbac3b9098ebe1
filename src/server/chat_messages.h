// Messages as clients send them, made into what chat templates expect.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/json.h"
#include "server/api_error.h"

namespace slip {

// What becomes of a part that is no text, such as a picture.
enum class OtherParts {
  refused,
  // In what a tool gave: clients send it again with every turn, so that a refusal would end the
  // conversation. A note lets the model go on without it.
  noted,
};

// Stands for a part of that type.
std::string note_of_part(std::string_view type);

// A text, nothing, or a list of text parts as one text. `path` is how the client calls it.
ApiResult<std::string> content_text(const Json* content, const std::string& path,
                                    OtherParts others = OtherParts::refused);

// Checks roles, contents and tool calls, and simplifies: `developer` is `system`, a list of text
// parts is one text, `reasoning` is `reasoning_content`; members that templates do not know
// (cache_control, names of users) are left out. `field` is what the client calls the messages;
// where they are not what it sent, their reader has checked them.
ApiResult<JsonArray> normalised_messages(const JsonArray& messages, std::string_view field);

// Templates accept a system message in the first place only; agents add more later on. All of them
// become the first message.
JsonArray with_one_system_message(JsonArray messages);

// Some templates refuse conversations in which no user speaks: an empty turn goes in front of the
// other turns. Whether there was none.
bool add_missing_user_turn(JsonArray& messages);

// Checks that every tool is a function with a name, and wraps those that are not wrapped as
// {"type": "function", "function": {...}}.
ApiResult<JsonArray> normalised_tools(const JsonArray& tools);

// Of a tool that normalised_tools() gave.
std::string_view tool_name(const Json& tool);

}  // namespace slip
