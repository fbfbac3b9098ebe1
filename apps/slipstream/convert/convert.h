// What the convert verbs share.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "checkpoint/tensor_class.h"
#include "convert/hybrid.h"
#include "slipstream/common/terminal.h"
#include "slipstream/pull/progress.h"
#include "slipstream/verb.h"

namespace slip {

// How far a conversion is; Ctrl-C stops what it shows.
class ConvertDisplay {
 public:
  explicit ConvertDisplay(bool quiet);

  // A note between the lines of progress.
  void say(const std::string& text) { line_.say(text); }
  // What was asked for: quiet or not, it is told.
  void answer(const std::string& text);
  // The beginning of the line: what is being done, and in what it is counted.
  enum class Unit { bytes, tokens };
  void stage(std::string what, Unit unit = Unit::bytes);
  bool progressed(uint64_t done, uint64_t total);
  ConvertProgress callback() {
    return [this](uint64_t done, uint64_t total) { return progressed(done, total); };
  }

  double seconds() const { return line_.seconds(); }

 private:
  std::string describe(uint64_t done, uint64_t total) const;

  ProgressLine line_;
  InterruptScope interrupts_;
  std::string stage_;
  Unit unit_ = Unit::bytes;
  RateMeter meter_;
};

// What a verb returns after a conversion that failed: kInterruptedStatus for Ctrl-C, after saying
// so.
Result<int> convert_failure(Error failure);

// "shared_experts,mtp"
Result<std::set<TensorClass>> parse_tensor_classes(const std::vector<std::string>& words);
// All words that it takes.
std::string tensor_class_words();

std::unique_ptr<Verb> make_convert_hybrid_verb();
std::unique_ptr<Verb> make_convert_mtp_verb();
std::unique_ptr<Verb> make_convert_int4_verb();
std::unique_ptr<Verb> make_convert_fp8_verb();
std::unique_ptr<Verb> make_convert_check_verb();
std::unique_ptr<Verb> make_convert_gguf_verb();

}  // namespace slip
