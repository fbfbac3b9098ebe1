// Command-line flags of one verb, declared once: parsing, --help and shell completion come from the
// same table. CLI11 does the work; only flags.cc sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slip {

class Flags {
 public:
  Flags(std::string verb, std::string summary);
  Flags(Flags&&) noexcept;
  ~Flags();

  // `names` as in "-n,--max-tokens". What `into` holds before is the default shown by --help.
  void flag(const std::string& names, bool* into, const std::string& help);
  void option(const std::string& names, std::string* into, const std::string& what,
              const std::string& help);
  void option(const std::string& names, int64_t* into, const std::string& what,
              const std::string& help);
  void option(const std::string& names, double* into, const std::string& what,
              const std::string& help);
  void option(const std::string& names, std::optional<std::string>* into, const std::string& what,
              const std::string& help);
  void option(const std::string& names, std::optional<int64_t>* into, const std::string& what,
              const std::string& help);
  void option(const std::string& names, std::optional<double>* into, const std::string& what,
              const std::string& help);
  // May be given several times.
  void option(const std::string& names, std::vector<std::string>* into, const std::string& what,
              const std::string& help);
  // One of `values`.
  void choice(const std::string& names, std::string* into, const std::vector<std::string>& values,
              const std::string& help);
  void positional(const std::string& name, std::string* into, const std::string& help);
  // Printed after the options: examples, notes.
  void footer(const std::string& text);

  enum class Outcome { run, done };
  // `done`: --help was asked for and printed. Errors name the flag and point to --help.
  Result<Outcome> parse(const std::vector<std::string>& arguments);

  // Values from a file, as {"port", "8080"}: they hold where the command line said nothing.
  using Settings = std::vector<std::pair<std::string, std::string>>;
  Status add_settings(const Settings& settings);

  // Every name with its dashes, for completion.
  std::vector<std::string> names() const;
  std::string help() const;
  const std::string& verb() const { return verb_; }
  const std::string& summary() const { return summary_; }

 private:
  struct Parser;  // CLI11's App

  // As parse(), with nothing but the reason in an error.
  Result<Outcome> take(const std::vector<std::string>& arguments);

  std::string verb_, summary_;
  std::vector<std::string> arguments_;  // as last parsed
  std::unique_ptr<Parser> parser_;
};

// What a flag's value was read as, or why it could not be, with the flag's name in front.
template <class T>
Result<T> of_flag(const char* flag, Result<T> read) {
  if (read.ok()) return read;
  return std::move(read).failure().in(flag);
}

// "4096", "32K", "1.5G", "512MB": a count with a decimal (K, M, G) or binary (KiB, MiB, GiB)
// suffix.
Result<uint64_t> parse_size(const std::string& text);

// Context lengths are counted as people say them: 32K is 32768.
Result<uint64_t> parse_context(const std::string& text);

// "512,32K": context lengths, none below `min`. An empty text is an empty list.
Result<std::vector<int64_t>> parse_counts(const std::string& text, int64_t min);

}  // namespace slip
