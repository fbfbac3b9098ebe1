// slipstream: one binary, a file per verb.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "slipstream/common/setting_flags.h"
#include "slipstream/verb.h"
#include "version.h"

namespace slip {
namespace {

void print_help(const std::vector<std::unique_ptr<Verb>>& verbs) {
  std::puts("slipstream runs large language models on one machine, straight from their files.\n");
  std::puts("Usage: slipstream VERB [OPTIONS]\n\nVerbs:");
  for (const auto& verb : verbs)
    std::printf("  %-18s %s\n", verb->flags().verb().c_str(), verb->flags().summary().c_str());
  std::puts("\nslipstream VERB --help shows the options of a verb.\n\nExamples:");
  std::puts("  slipstream run                        chat with minnow, which comes along");
  std::puts("  slipstream run DIR \"Why is it so?\"     one answer from the model in DIR");
  std::puts("  slipstream serve DIR                  an OpenAI-compatible server on port 8080");
  std::puts("  slipstream pull ORG/NAME              download a model from Hugging Face");
  std::puts("  slipstream inspect DIR                what a checkpoint holds and needs");
}

// "bench ladder" is a verb of two words; "bench" alone is another.
Verb* find_verb(const std::vector<std::unique_ptr<Verb>>& verbs, int argc, char** argv,
                int& first_argument) {
  for (const int words : {2, 1}) {
    if (argc <= words) continue;
    const std::string typed = words == 2 ? cat(argv[1], " ", argv[2]) : argv[1];
    for (const auto& verb : verbs) {
      if (verb->flags().verb() != typed) continue;
      first_argument = words + 1;
      return verb.get();
    }
  }
  return nullptr;
}

// "convert" alone is no verb, but the beginning of several.
int explain_group(const std::vector<std::unique_ptr<Verb>>& verbs, const std::string& group,
                  const std::string& second) {
  std::string members;
  for (const auto& verb : verbs) {
    const Flags& flags = verb->flags();
    if (!flags.verb().starts_with(group + " ")) continue;
    std::string name = flags.verb();
    name.resize(std::max<size_t>(name.size(), 18), ' ');
    members += cat("  ", name, " ", flags.summary(), "\n");
  }
  if (members.empty()) {
    std::fprintf(stderr, "slipstream: there is no verb \"%s\"; see slipstream --help\n",
                 group.c_str());
    return 2;
  }
  const bool asked = second == "-h" || second == "--help" || second == "help";
  if (!asked)
    std::fprintf(stderr, "slipstream: %s needs one of these words behind it%s\n", group.c_str(),
                 second.empty() ? "" : cat(", not \"", second, "\"").c_str());
  std::fprintf(asked ? stdout : stderr,
               "%sUsage: slipstream %s WHAT [OPTIONS]\n\n%s\nslipstream %s WHAT --help shows the "
               "options.\n",
               asked ? "" : "\n", group.c_str(), members.c_str(), group.c_str());
  return asked ? 0 : 2;
}

// Exit statuses: 0 worked, 1 failed, 2 the command line was wrong.
int main_result(int argc, char** argv) {
  const auto verbs = make_all_verbs();
  const std::string first = argc > 1 ? argv[1] : "--help";
  if (first == "-h" || first == "--help" || first == "help") {
    print_help(verbs);
    return 0;
  }
  if (first == "--version" || first == "version") {
    std::printf("slipstream %s\n", kVersion);
    return 0;
  }
  int first_argument = 0;
  Verb* verb = find_verb(verbs, argc, argv, first_argument);
  if (!verb) return explain_group(verbs, first, argc > 2 ? argv[2] : "");
  const Result<Flags::Outcome> outcome =
      verb->flags().parse(std::vector<std::string>(argv + first_argument, argv + argc));
  if (!outcome.ok()) {
    std::fprintf(stderr, "%s\n", outcome.failure().message.c_str());
    return 2;
  }
  if (outcome.value() == Flags::Outcome::done) return 0;
  const std::string& name = verb->flags().verb();
  if (const Status settled = verb->settle(); !settled.ok()) {
    std::fprintf(stderr, "slipstream %s: %s; see slipstream %s --help\n", name.c_str(),
                 settled.failure().message.c_str(), name.c_str());
    return 2;
  }
  const Result<int> status = verb->run();
  if (!status.ok()) {
    std::fprintf(stderr, "slipstream %s: %s\n", name.c_str(), explain(status.failure()).c_str());
    return 1;
  }
  return status.value();
}

// What was printed counts when it has left this program. A reader that went away (`| head`) has
// what it wanted.
bool output_arrived() {
  const int reason = std::fflush(stdout) == 0 ? 0 : errno;
  if (reason == EPIPE || (reason == 0 && !std::ferror(stdout))) return true;
  const std::string why =
      reason == 0 ? "not all was written" : std::generic_category().message(reason);
  std::fprintf(stderr, "slipstream: standard output: %s\n", why.c_str());
  return false;
}

}  // namespace
}  // namespace slip

int main(int argc, char** argv) {
  const int status = slip::main_result(argc, argv);
  return status != 0 || slip::output_arrived() ? status : 1;
}
