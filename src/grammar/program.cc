#include "grammar/program.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "grammar/rule_checks.h"
#include "grammar/utf8_ranges.h"

namespace slip {
namespace {

using Op = Instruction::Op;

constexpr int32_t kNever = std::numeric_limits<int32_t>::max() / 4;

// Emits instructions from the end of a rule towards its beginning, so that what follows is known.
class Compiler {
 public:
  Compiler(const Rules& rules, const std::vector<bool>& nullable, const ByteSet& usable)
      : rules_(rules), nullable_(nullable), usable_(usable) {}

  Result<Program> run(RuleId start) {
    entries_.assign(rules_.rule_count(), -1);
    // Rules made late are mostly called by those made early: heights are then known in one sweep.
    for (size_t i = rules_.rule_count(); i-- > 0;) {
      const int32_t end = emit({.op = Op::end});
      entries_[i] = lower(rules_.body(RuleId(i)), end, -1);
      if (too_large()) break;
    }
    for (size_t i = 0; i < outlined_.size() && !too_large(); ++i) {
      const int32_t end = emit({.op = Op::end});
      outlined_[i].entry = lower(outlined_[i].body, end, -1);
    }
    if (too_large())
      return error("the grammar needs more than ", kMaxInstructions, " states; make it smaller");
    resolve_calls();
    find_heights();
    program_.start = entries_[size_t(start)];
    const int32_t height = program_.code[size_t(program_.start)].height;
    if (height >= kNever) return error("no finite text satisfies the grammar");
    if (height > kMaxCallDepth)
      return error("the grammar nests deeper than ", kMaxCallDepth, " levels");
    return std::move(program_);
  }

 private:
  struct Outlined {
    ExprId body;
    int32_t entry = -1;
  };

  bool too_large() const { return program_.code.size() > kMaxInstructions; }

  int32_t emit(Instruction instruction) {
    program_.code.push_back(instruction);
    return int32_t(program_.code.size() - 1);
  }

  int32_t emit_bytes(ByteSet set, int32_t next, int32_t counter) {
    set &= usable_;
    const auto [known, is_new] = set_numbers_.try_emplace(set, int32_t(program_.sets.size()));
    if (is_new) program_.sets.push_back(set);
    // Characters of a class often end alike.
    const uint64_t key = uint64_t(uint32_t(known->second)) << 32 | uint32_t(next);
    const auto [same, first] = bytes_at_.try_emplace(key, -1);
    if (first)
      same->second =
          emit({.op = Op::bytes, .next = next, .other = known->second, .counter = counter});
    return same->second;
  }

  int32_t emit_literal(std::string_view text, int32_t next, int32_t counter) {
    for (size_t i = text.size(); i-- > 0;) {
      ByteSet set;
      set.add(uint8_t(text[i]));
      next = emit_bytes(set, next, counter);
    }
    return next;
  }

  // The instruction that begins `id` and goes on to `next`. `counter`: the loop around it.
  int32_t lower(ExprId id, int32_t next, int32_t counter) {
    if (too_large()) return next;
    const Expr& expr = rules_[id];
    switch (expr.kind) {
      case Expr::Kind::bytes: return emit_bytes(expr.bytes, next, counter);
      case Expr::Kind::literal: return emit_literal(expr.text, next, counter);
      case Expr::Kind::sequence:
        for (size_t i = expr.parts.size(); i-- > 0;) next = lower(expr.parts[i], next, counter);
        return next;
      case Expr::Kind::choice: return lower_choice(expr, next, counter);
      case Expr::Kind::repeat: return lower_repeat(id, next, counter);
      case Expr::Kind::call:
        return emit({.op = Op::call,
                     .nullable = nullable_[size_t(expr.rule)],
                     .next = next,
                     .other = int32_t(expr.rule),
                     .counter = counter});
      case Expr::Kind::tag: {
        const int32_t spelt = emit_literal(expr.text, next, counter);
        program_.tags.push_back(expr.text);
        return emit({.op = Op::tag,
                     .next = next,
                     .other = spelt,
                     .counter = int32_t(program_.tags.size() - 1)});
      }
      case Expr::Kind::text_without: return lower_text_without(id, next, counter);
    }
    unreachable("Expr::Kind");
  }

  int32_t lower_choice(const Expr& expr, int32_t next, int32_t counter) {
    if (expr.parts.empty()) return emit_bytes(ByteSet(), next, counter);
    int32_t entry = -1;
    for (size_t i = expr.parts.size(); i-- > 0;) {
      const int32_t part = lower(expr.parts[i], next, counter);
      entry = entry < 0 ? part
                        : emit({.op = Op::fork, .next = part, .other = entry, .counter = counter});
    }
    return entry;
  }

  int32_t lower_repeat(ExprId id, int32_t next, int32_t counter) {
    const Expr& expr = rules_[id];
    const ExprId part = expr.parts[0];
    const uint8_t kinds = expr.text_kind ? uint8_t(1 << int(*expr.text_kind)) : 0;
    if (expr.min == 0 && expr.max == 1) {
      const int32_t body = lower(part, next, counter);
      return emit({.op = Op::fork, .next = body, .other = next, .counter = counter});
    }
    if (expr.min <= 1 && expr.max == kUnbounded) {
      const int32_t again = emit({.op = Op::fork, .other = next, .counter = counter});
      const int32_t body = lower(part, again, counter);
      program_.code[size_t(again)].next = body;
      program_.code[size_t(again)].text_kinds = kinds;
      return expr.min == 0 ? again : body;
    }
    if (counter >= 0) return call_outlined(id, next, counter);
    const int32_t number = add_loop(expr);
    const int32_t loop =
        emit({.op = Op::loop, .text_kinds = kinds, .next = -1, .other = next, .counter = number});
    const int32_t count = emit({.op = Op::loop_next, .next = loop, .counter = number});
    const int32_t body = lower(part, count, number);
    program_.code[size_t(loop)].next = body;
    return loop;
  }

  int32_t add_loop(const Expr& expr) {
    const int32_t max =
        expr.max == kUnbounded ? std::numeric_limits<int32_t>::max() : int32_t(expr.max);
    program_.loops.push_back({int32_t(expr.min), max});
    return int32_t(program_.loops.size() - 1);
  }

  // A rule keeps one count at a time; a loop within a loop counts in a rule of its own.
  int32_t call_outlined(ExprId id, int32_t next, int32_t counter) {
    const auto [known, is_new] = outlined_at_.try_emplace(id, outlined_.size());
    if (is_new) outlined_.push_back({id});
    return emit({.op = Op::call,
                 .nullable = rules_[id].min == 0,
                 .next = next,
                 .other = int32_t(rules_.rule_count() + known->second),
                 .counter = counter});
  }

  // One fork per beginning of a tag that the text may end with: each may be followed by `next`, by
  // the byte that comes closer to a tag, unless that would complete it, or by something else.
  int32_t lower_text_without(ExprId id, int32_t next, int32_t counter) {
    const Expr& expr = rules_[id];
    const bool counted = expr.min > 0 || expr.max != kUnbounded;
    if (counted && counter >= 0) return call_outlined(id, next, counter);
    if (counted) counter = add_loop(expr);
    std::map<std::string, int32_t> states;
    for (const std::string& tag : expr.tags)
      for (size_t length = 0; length < tag.size(); ++length)
        states.try_emplace(tag.substr(0, length), -1);
    for (auto& [prefix, state] : states)
      state = emit({.op = counted ? Op::loop : Op::fork, .counter = counter});
    // All states share the count of characters.
    std::map<std::string, int32_t> entries = states;
    if (counted)
      for (auto& [prefix, entry] : entries)
        entry = emit({.op = Op::loop_next, .next = entry, .counter = counter});

    const int32_t root = entries.at("");
    ByteSet others;  // lead back to the root
    for (int byte = 0; byte < (expr.any_bytes ? 256 : 128); ++byte)
      if (byte != '<') others.add(uint8_t(byte));
    for (const auto& [prefix, state] : states) {
      ByteSet elsewhere = others;
      std::vector<int32_t> ways;
      const auto leave_out = [&](char byte) {
        ByteSet all_but;
        for (int other = 0; other < 256; ++other)
          if (other != uint8_t(byte)) all_but.add(uint8_t(other));
        elsewhere &= all_but;
      };
      ByteSet seen;
      for (const std::string& tag : expr.tags) {
        if (!tag.starts_with(prefix)) continue;
        const char byte = tag[prefix.size()];
        leave_out(byte);
        if (seen.contains(uint8_t(byte)) || tag.size() == prefix.size() + 1) continue;
        seen.add(uint8_t(byte));
        ways.push_back(
            emit_literal(std::string_view(&byte, 1), entries.at(prefix + byte), counter));
      }
      if (!seen.contains('<')) ways.push_back(emit_literal("<", entries.at("<"), counter));
      ways.push_back(emit_bytes(elsewhere, root, counter));
      if (!expr.any_bytes)
        for (const ByteSequence& bytes : utf8_sequences({{0x80, 0x10FFFF}}))
          ways.push_back(lower_sequence(bytes, root, counter));
      int32_t chain = ways.back();
      for (size_t i = ways.size() - 1; i-- > 0;)
        chain = emit({.op = Op::fork, .next = ways[i], .other = chain, .counter = counter});
      Instruction& fork = program_.code[size_t(state)];
      fork.next = chain;
      fork.other = next;
      fork.free_text = expr.free;
    }
    const int32_t start = states.at("");
    program_.code[size_t(start)].text_kinds = uint8_t(1 << int(TextKind::no_tag));
    return start;
  }

  int32_t lower_sequence(const ByteSequence& bytes, int32_t next, int32_t counter) {
    for (size_t i = bytes.size(); i-- > 0;)
      next = emit_bytes(ByteSet::range(bytes[i].first, bytes[i].last), next, counter);
    return next;
  }

  // Calls were emitted with the number of their rule, which then had no address yet.
  void resolve_calls() {
    for (Instruction& instruction : program_.code)
      if (instruction.op == Op::call) {
        const size_t rule = size_t(instruction.other);
        instruction.other = rule < rules_.rule_count()
                                ? entries_[rule]
                                : outlined_[rule - rules_.rule_count()].entry;
      }
  }

  int32_t height_of(const Instruction& at) const {
    const auto height = [this](int32_t pc) { return program_.code[size_t(pc)].height; };
    switch (at.op) {
      case Op::bytes: return program_.sets[size_t(at.other)].empty() ? kNever : height(at.next);
      case Op::fork: return std::min(height(at.next), height(at.other));
      case Op::call: {
        const int32_t called = std::min(kNever, height(at.other) + 1);
        const int32_t through = std::max(called, height(at.next));
        return at.nullable ? std::min(through, height(at.next)) : through;
      }
      case Op::loop:
        return program_.loops[size_t(at.counter)].min > 0
                   ? std::max(height(at.next), height(at.other))
                   : height(at.other);
      case Op::loop_next: return height(program_.code[size_t(at.next)].other);
      case Op::tag: return std::min(height(at.next), height(at.other));
      case Op::end: return 0;
    }
    unreachable("Op");
  }

  void find_heights() {
    for (Instruction& instruction : program_.code) instruction.height = kNever;
    for (bool changed = true; changed;) {
      changed = false;
      for (Instruction& instruction : program_.code) {
        const int32_t height = height_of(instruction);
        changed |= height < instruction.height;
        instruction.height = std::min(instruction.height, height);
      }
    }
  }

  const Rules& rules_;
  const std::vector<bool>& nullable_;
  const ByteSet& usable_;
  Program program_;
  std::vector<int32_t> entries_;  // [rules]
  std::vector<Outlined> outlined_;
  std::unordered_map<ExprId, size_t> outlined_at_;
  std::map<ByteSet, int32_t> set_numbers_;
  std::unordered_map<uint64_t, int32_t> bytes_at_;  // by set and what follows
};

}  // namespace

Result<Program> compile_rules(const Rules& rules, RuleId start, const ByteSet& usable) {
  const std::vector<bool> nullable = find_nullable_rules(rules);
  SLIP_TRY_STATUS(check_recursion(rules, nullable));
  SLIP_TRY_STATUS(check_repetitions(rules, nullable));
  return Compiler(rules, nullable, usable).run(start);
}

}  // namespace slip
