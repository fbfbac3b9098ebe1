#include "slipstream/common/flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <sstream>

#include "slipstream/common/terminal.h"

namespace slip {
namespace {

constexpr size_t kHelpIndent = 34;  // of what a flag does, behind its name

// Breaks lines between words, so that none is wider than `width`, as far as words allow. Lines that
// are indented stay: they are examples and lists.
std::string wrapped(const std::string& text, size_t width) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); result += line + '\n') {
    while (line.size() > width && !line.starts_with(' ')) {
      const size_t within = line.rfind(' ', width);
      const size_t end = within == std::string::npos ? line.find(' ') : within;
      if (end == std::string::npos) break;
      result += line.substr(0, end) + '\n';
      line.erase(0, end + 1);
    }
  }
  if (!result.empty()) result.pop_back();
  return result;
}

// Help as wide as the terminal.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kHelpIndent); }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option), columns() - kHelpIndent);
  }
  std::string make_footer(const CLI::App* app) const override {
    return wrapped(CLI::Formatter::make_footer(app), columns()) + "\n";
  }

 private:
  // A word needs room, and a full line makes terminals begin the next one.
  static size_t columns() { return size_t(std::max(terminal_size().columns, 60)) - 1; }
};

// Reads a number as people write it: CLI11 takes 010 for eight, and the largest number there is for
// one that is larger. False for what is none.
template <class Number>
bool read_number(std::string_view text, Number& into) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), into);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

CLI::Validator whole_number() {
  return {[](std::string& text) {
            int64_t value = 0;
            if (!read_number(text, value))
              return cat("expects a whole number of at most 63 bits, not \"", text, "\"");
            text = std::to_string(value);
            return std::string();
          },
          ""};
}

CLI::Validator number() {
  return {[](std::string& text) {
            double value = 0;
            const bool is_number = read_number(text, value) && std::isfinite(value);
            return is_number ? "" : cat("expects a number, not \"", text, "\"");
          },
          ""};
}

}  // namespace

struct Flags::Parser {
  explicit Parser(const std::string& summary) : app(summary) {}
  CLI::App app;
};

Flags::Flags(std::string verb, std::string summary)
    : verb_(std::move(verb)), summary_(std::move(summary)) {
  parser_ = std::make_unique<Parser>(summary_);
  CLI::App& app = parser_->app;
  app.name("slipstream " + verb_);
  app.set_help_flag("-h,--help", "Show this help");
  app.option_defaults()->always_capture_default();
  app.formatter(std::make_shared<HelpFormatter>());
}
Flags::Flags(Flags&&) noexcept = default;
Flags::~Flags() = default;

void Flags::flag(const std::string& names, bool* into, const std::string& help) {
  parser_->app.add_flag(names, *into, help);
}
void Flags::option(const std::string& names, std::string* into, const std::string& what,
                   const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what);
}
void Flags::option(const std::string& names, int64_t* into, const std::string& what,
                   const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what)->transform(whole_number());
}
void Flags::option(const std::string& names, double* into, const std::string& what,
                   const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what)->transform(number());
}
void Flags::option(const std::string& names, std::optional<std::string>* into,
                   const std::string& what, const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what);
}
void Flags::option(const std::string& names, std::optional<int64_t>* into, const std::string& what,
                   const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what)->transform(whole_number());
}
void Flags::option(const std::string& names, std::optional<double>* into, const std::string& what,
                   const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what)->transform(number());
}
void Flags::option(const std::string& names, std::vector<std::string>* into,
                   const std::string& what, const std::string& help) {
  parser_->app.add_option(names, *into, help)
      ->type_name(what)
      ->expected(1)
      ->allow_extra_args(false)  // a word behind the value is not another one
      ->take_all()
      ->default_str("");
}
void Flags::choice(const std::string& names, std::string* into,
                   const std::vector<std::string>& values, const std::string& help) {
  parser_->app.add_option(names, *into, help)
      ->type_name(join(values, "|"))
      ->check(CLI::IsMember(values).description(""));
}
void Flags::positional(const std::string& name, std::string* into, const std::string& help) {
  parser_->app.add_option(name, *into, help)->type_name("");
}
void Flags::footer(const std::string& text) { parser_->app.footer(text); }

Result<Flags::Outcome> Flags::parse(const std::vector<std::string>& arguments) {
  arguments_ = arguments;
  Result<Outcome> outcome = take(arguments);
  if (outcome.ok()) return outcome;
  return error("slipstream ", verb_, ": ", outcome.failure().message, "; see slipstream ", verb_,
               " --help");
}

Result<Flags::Outcome> Flags::take(const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    parser_->app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::fputs(help().c_str(), stdout);
    return Outcome::done;
  } catch (const CLI::ParseError& failure) {
    return error(failure.what());
  }
  return Outcome::run;
}

Status Flags::add_settings(const Settings& settings) {
  std::vector<std::string> arguments;
  for (const auto& [name, value] : settings) {
    const CLI::Option* option = parser_->app.get_option_no_throw("--" + name);
    if (!option) return error("there is no setting \"", name, "\"");
    if (option->count() == 0) arguments.push_back(cat("--", name, "=", value));
  }
  arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
  const Result<Outcome> outcome = take(arguments);
  return outcome.ok() ? Status() : outcome.failure();
}

std::vector<std::string> Flags::names() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser_->app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string Flags::help() const { return parser_->app.help(); }

namespace {

Result<uint64_t> parse_count(const std::string& text, double thousand) {
  const Error wrong = error("\"", text, "\" is not a size; write 4096, 32K, 1.5G or 512MiB");
  size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    return wrong;
  }
  std::string suffix = text.substr(used);
  if (suffix.ends_with("B")) suffix.pop_back();
  if (suffix.ends_with("i")) {
    suffix.pop_back();
    thousand = 1024;
  }
  const std::string powers = "KMGT";
  int power = 0;
  if (suffix.size() == 1 && powers.find(char(std::toupper(suffix[0]))) != std::string::npos) {
    power = int(powers.find(char(std::toupper(suffix[0])))) + 1;
  } else if (!suffix.empty()) {
    return wrong;
  }
  const double value = number * std::pow(thousand, power);
  if (!(value >= 0 && value < 1e18)) return wrong;
  return uint64_t(value);
}

}  // namespace

Result<uint64_t> parse_size(const std::string& text) { return parse_count(text, 1000); }

Result<uint64_t> parse_context(const std::string& text) { return parse_count(text, 1024); }

Result<std::vector<int64_t>> parse_counts(const std::string& text, int64_t min) {
  std::vector<int64_t> counts;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    SLIP_TRY(const uint64_t count, parse_context(part));
    if (int64_t(count) < min) return error("\"", part, "\" is less than ", min);
    counts.push_back(int64_t(count));
  }
  return counts;
}

}  // namespace slip
