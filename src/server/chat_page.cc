#include "server/chat_page.h"

// The assembler copies the file in: an array in C++ would take the compiler long and say the same.
asm(".section .rodata\n"
    "slip_chat_page_begin:\n"
    ".incbin \"" SLIP_CHAT_PAGE
    "\"\n"
    "slip_chat_page_end:\n"
    ".previous\n");

extern const char slip_chat_page_begin[], slip_chat_page_end[];

namespace slip {

std::string_view chat_page() {
  return {slip_chat_page_begin, size_t(slip_chat_page_end - slip_chat_page_begin)};
}

}  // namespace slip
