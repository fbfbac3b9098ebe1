#include "verb.h"
namespace slip {
struct Stub : Verb { Flags f; Stub(std::string n) : f(n, n) {} Flags& flags() override { return f; } Result<int> run() override { return 0; } };
std::unique_ptr<Verb> make_doctor_verb() { return std::make_unique<Stub>("doctor"); }
std::unique_ptr<Verb> make_completions_verb() { return std::make_unique<Stub>("completions"); }
}
