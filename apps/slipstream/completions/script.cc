#include "slipstream/completions/script.h"

#include <algorithm>
#include <map>

namespace slip {
namespace {

// "eval logits" is a verb of two words.
std::string first_word(const std::string& name) { return name.substr(0, name.find(' ')); }
std::string second_word(const std::string& name) {
  const size_t blank = name.find(' ');
  return blank == std::string::npos ? "" : name.substr(blank + 1);
}

// First words in order, each once, and the second words they have.
std::vector<std::pair<std::string, std::vector<std::string>>> tree(
    const std::vector<VerbToComplete>& verbs) {
  std::vector<std::pair<std::string, std::vector<std::string>>> first_words;
  for (const VerbToComplete& verb : verbs) {
    const std::string first = first_word(verb.name);
    auto found = std::find_if(first_words.begin(), first_words.end(),
                              [&](const auto& entry) { return entry.first == first; });
    if (found == first_words.end()) found = first_words.insert(found, {first, {}});
    if (const std::string second = second_word(verb.name); !second.empty())
      found->second.push_back(second);
  }
  return first_words;
}

std::vector<std::string> first_words(const std::vector<VerbToComplete>& verbs) {
  std::vector<std::string> words;
  for (const auto& [first, seconds] : tree(verbs)) words.push_back(first);
  return words;
}

// "bench" is a verb although "bench ladder" is one: what follows it may be something else.
bool stands_alone(const std::string& word, const std::vector<VerbToComplete>& verbs) {
  return std::any_of(verbs.begin(), verbs.end(),
                     [&](const VerbToComplete& verb) { return verb.name == word; });
}

// What stands between single quotes in a shell script.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char byte : text) out += byte == '\'' ? "'\\''" : std::string(1, byte);
  return out + "'";
}

std::string bash_script(const std::vector<VerbToComplete>& verbs) {
  std::string out =
      "# bash completion; load it with: source <(slipstream completions bash)\n"
      "_slipstream() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} flags=\"\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      join(first_words(verbs), " ") +
      "\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case $verb in\n";
  for (const auto& [first, seconds] : tree(verbs))
    if (!seconds.empty())
      out += "    " + first + ")\n      if [[ $COMP_CWORD -eq 2 && $word != -* ]]; then\n" +
             "        COMPREPLY=($(compgen " + (stands_alone(first, verbs) ? "-f " : "") + "-W \"" +
             join(seconds, " ") + "\" -- \"$word\"))\n        return\n      fi\n" +
             "      case ${COMP_WORDS[2]} in\n        " + join(seconds, " | ") +
             ") verb=\"$verb ${COMP_WORDS[2]}\" ;;\n      esac ;;\n";
  out += "  esac\n  case $verb in\n";
  for (const VerbToComplete& verb : verbs)
    out += "    " + in_quotes(verb.name) + ") flags=\"" + join(verb.flags, " ") + "\" ;;\n";
  out +=
      "  esac\n"
      "  case $word in\n"
      "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
      "  esac\n"
      "}\n"
      "complete -o filenames -F _slipstream slipstream\n";
  return out;
}

std::string zsh_script(const std::vector<VerbToComplete>& verbs) {
  std::string out =
      "#compdef slipstream\n"
      "# zsh completion; load it with: source <(slipstream completions zsh)\n"
      "_slipstream() {\n"
      "  local verb=$words[2]\n"
      "  if (( CURRENT == 2 )); then\n"
      "    compadd -- " +
      join(first_words(verbs), " ") +
      "\n    return\n"
      "  fi\n"
      "  case $verb in\n";
  for (const auto& [first, seconds] : tree(verbs))
    if (!seconds.empty())
      out += "    " + first + ")\n      if (( CURRENT == 3 )) && [[ $words[3] != -* ]]; then\n" +
             (stands_alone(first, verbs) ? "        _files\n" : "") + "        compadd -- " +
             join(seconds, " ") + "\n        return\n      fi\n      case $words[3] in\n        " +
             join(seconds, " | ") + ") verb=\"$verb $words[3]\" ;;\n      esac ;;\n";
  out +=
      "  esac\n"
      "  if [[ $words[CURRENT] != -* ]]; then\n"
      "    _files\n"
      "    return\n"
      "  fi\n"
      "  case $verb in\n";
  for (const VerbToComplete& verb : verbs)
    out += "    " + in_quotes(verb.name) + ") compadd -- " + join(verb.flags, " ") + " ;;\n";
  out +=
      "  esac\n"
      "}\n"
      "compdef _slipstream slipstream\n";
  return out;
}

std::string fish_script(const std::vector<VerbToComplete>& verbs) {
  std::string out = "# fish completion; load it with: slipstream completions fish | source\n";
  std::map<std::string, std::string> summaries;
  for (const VerbToComplete& verb : verbs) summaries[verb.name] = verb.summary;
  const std::string nothing = "complete -c slipstream -n __fish_use_subcommand -f -a ";
  const std::string after = "complete -c slipstream -n ", seen = "__fish_seen_subcommand_from ";
  std::map<std::string, std::string> others;  // behind a first word alone
  for (const auto& [first, seconds] : tree(verbs)) {
    const bool alone = stands_alone(first, verbs);
    out += nothing + first + (alone ? " -d " + in_quotes(summaries[first]) : "") + "\n";
    if (seconds.empty()) continue;
    others[first] = cat(seen, first, "; and not ", seen, join(seconds, " "));
    out += after + in_quotes(others[first]) + (alone ? " -a " : " -f -a ") +
           in_quotes(join(seconds, " ")) + "\n";
  }
  for (const VerbToComplete& verb : verbs) {
    const std::string first = first_word(verb.name), second = second_word(verb.name);
    std::string condition = seen + first;
    if (!second.empty()) {
      condition += cat("; and ", seen, second);
    } else if (others.contains(first)) {
      condition = others[first];
    }
    for (const std::string& flag : verb.flags) {
      const bool is_long = flag.starts_with("--");
      out += after + in_quotes(condition) + (is_long ? " -l " : " -s ") +
             flag.substr(is_long ? 2 : 1) + "\n";
    }
  }
  return out;
}

}  // namespace

Result<std::string> completion_script(const std::string& shell,
                                      const std::vector<VerbToComplete>& verbs) {
  if (shell == "bash") return bash_script(verbs);
  if (shell == "zsh") return zsh_script(verbs);
  if (shell == "fish") return fish_script(verbs);
  return error("expected bash, zsh or fish, found \"", shell, "\"");
}

}  // namespace slip
