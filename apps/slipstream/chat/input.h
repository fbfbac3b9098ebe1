// What a person types in a chat: messages over several lines, and commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slip {

// Whether Enter sends the text: not behind a backslash, nor inside """ ... """.
bool is_complete_message(std::string_view text);

// The message itself: without the marks that let it go on over several lines.
std::string message_text(std::string_view typed);

enum class Command { clear, system, think, stats, save, help, leave };

struct TypedCommand {
  Command command;
  std::string argument;  // the rest, without blanks around it
};

bool is_command(std::string_view text);

// Unknown commands come back as an error that names the nearest one.
Result<TypedCommand> parse_command(std::string_view text);

// Every spelling, for completion.
std::vector<std::string> command_words();

// What /help prints.
std::string chat_help();

}  // namespace slip
