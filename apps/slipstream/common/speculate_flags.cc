#include "slipstream/common/speculate_flags.h"

#include "base/ascii.h"

namespace slip {

void SpeculateFlags::add_to(Flags& flags) {
  flags.option(
      "--speculate", &speculate, "off|N|auto",
      "Number of tokens to draft per step; auto: as many as make it faster. Drafts change the "
      "speed, never the text");
  add_drafter_to(flags);
}

void SpeculateFlags::add_drafter_to(Flags& flags) {
  flags.choice(
      "--drafter", &drafter, {"int4", "int8", "keep"},
      "Format of the drafting layer where the files have 16 bits: rounded while loading, or kept; "
      "a coarser one is faster, its drafts are right less often");
  flags.option("--draft-shortlist", &shortlist, "N",
               "Choose drafts from a list of the N most common tokens; 0: from all tokens");
}

Status SpeculateFlags::check() const {
  if (shortlist < 0 || shortlist == 1)
    return error("--draft-shortlist is 0 for all tokens or a number from 2 on, not ", shortlist);
  if (speculate == "off" || speculate == "auto") return {};
  const std::optional<uint64_t> drafts = parse_decimal(speculate);
  if (!drafts)
    return error("--speculate is off, auto or a number of drafts, not \"", speculate, "\"");
  if (*drafts > kMaxDrafts)
    return error("--speculate drafts up to ", kMaxDrafts, " tokens, not ", speculate);
  return {};
}

void SpeculateFlags::apply(EngineOptions& options) const {
  const std::optional<DraftLength> wanted = length();
  options.max_drafts = wanted ? wanted->most() : 0;
  apply_drafter(options.weights);
}

void SpeculateFlags::apply_drafter(WeightChoices& weights) const {
  if (drafter == "int8") weights.drafter = WeightFormat::int8_row;
  if (drafter == "int4") weights.drafter = WeightFormat::int4_group;
  weights.draft_shortlist = shortlist;
}

std::optional<DraftLength> SpeculateFlags::length() const {
  if (speculate == "auto") return DraftLength::automatic(kMaxDrafts);
  if (speculate == "off" || std::stol(speculate) == 0) return std::nullopt;
  return DraftLength::fixed(std::stol(speculate));
}

std::string why_no_drafts(const ModelSource& source, const SpeculateFlags& flags) {
  if (flags.speculate == "off" || source.can_draft()) return "";
  return "the files have no usable MTP layer and no usable drafter lies beside them, so nothing is "
         "drafted";
}

}  // namespace slip
