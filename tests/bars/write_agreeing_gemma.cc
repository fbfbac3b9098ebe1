// Writes a Gemma 4 and a drafter that is mostly right about it. usage: write_agreeing_gemma FOLDER
#include <cstdio>

#include "tests/engine/agreeing_gemma.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 2;
  }
  slip::write_agreeing_gemma(arguments[1], slip::kAgreeingOnTheRoof);
}
