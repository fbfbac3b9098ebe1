// GPT-2's reversible map between bytes and printable characters. Byte-level vocabularies spell
// their tokens with it ("Ġthe" is " the"); inside slipstream tokens are the bytes themselves.
#pragma once

#include <string>
#include <string_view>

namespace slip {

// Appends the bytes that `token` spells. False, and `out` as it was, if some character of it stands
// for no byte. `token` is valid UTF-8.
bool append_byte_level(std::string_view token, std::string& out);

}  // namespace slip
