// Is the engine able to answer? A process that is alive may have hung, or a model may say nothing
// but NaN; so one token is asked for at the start, and again when somebody wants to know and the
// last one is old.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/service.h"

namespace slip {

class Canary {
 public:
  explicit Canary(Service& service);

  // Asks for a token and waits for it.
  Status check_now(double seconds);

  // What was wrong with the last one. If that is some time ago, asks for another, without waiting:
  // its outcome is for the next who wants to know.
  std::optional<std::string> complaint();

 private:
  class Token;  // one, and what became of it

  void ask();

  Service& service_;
  std::shared_ptr<Token> token_;  // the last that was asked for
  std::optional<std::string> complaint_;
};

}  // namespace slip
