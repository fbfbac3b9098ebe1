#include "text/output_format.h"

#include "text/gemma_template.h"

namespace slip {

constinit const OutputFormat kQwenOutput = {
    .thoughts_open = "<think>",
    .thoughts_close = "</think>",
    .thoughts_title = "",
    .after_thoughts = "\n\n",
    .thoughts_anywhere = false,
    .calls = OutputFormat::Calls::tags,
    .call_open = "<tool_call>",
    .call_close = "</tool_call>",
    .bare_call = "<function=",
    .quote = "",
    .fallback_template = {},
    .turn_ends = {},
};

const OutputFormat kGemmaOutput = {
    .thoughts_open = "<|channel>",
    .thoughts_close = "<channel|>",
    .thoughts_title = "thought\n",
    .after_thoughts = "",
    .thoughts_anywhere = true,
    .calls = OutputFormat::Calls::braces,
    .call_open = "<|tool_call>",
    .call_close = "<tool_call|>",
    .bare_call = "<|tool_call>",
    .quote = "<|\"|>",
    .fallback_template = kGemmaTemplate,
    .turn_ends = {"<turn|>", "<|tool_response>"},
};

const OutputFormat& output_format_of(const Tokenizer& tokenizer) {
  const bool is_gemma = tokenizer.find(kGemmaOutput.thoughts_open) &&
                        tokenizer.find(kGemmaOutput.thoughts_close) &&
                        tokenizer.find(kGemmaOutput.quote);
  return is_gemma ? kGemmaOutput : kQwenOutput;
}

}  // namespace slip
