#include "flags.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <sstream>

namespace slip {

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
  app.get_formatter()->column_width(34);
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
  parser_->app.add_option(names, *into, help)->type_name(what);
}
void Flags::option(const std::string& names, double* into, const std::string& what,
                   const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what);
}
void Flags::option(const std::string& names, std::optional<std::string>* into,
                   const std::string& what, const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what);
}
void Flags::option(const std::string& names, std::optional<int64_t>* into, const std::string& what,
                   const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what);
}
void Flags::option(const std::string& names, std::optional<double>* into, const std::string& what,
                   const std::string& help) {
  parser_->app.add_option(names, *into, help)->type_name(what);
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
