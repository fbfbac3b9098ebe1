#include "text/gemma_template.h"

namespace slip {

// Written for Jinja as Hugging Face sets it up: a line break behind a block, and blanks before one,
// do not count. What models of 12B and more want with thinking off, an empty thought, is left out:
// it harms the small ones, and without a template of its own nobody knows which one this is.
constinit const std::string_view kGemmaTemplate = R"jinja(
{%- macro quote(text) -%}
  {{- '<|"|>' ~ text ~ '<|"|>' -}}
{%- endmacro -%}

{%- macro value(given, quoted_keys=true) -%}
  {%- if given is string -%}
    {{- quote(given) -}}
  {%- elif given is boolean -%}
    {{- 'true' if given else 'false' -}}
  {%- elif given is none -%}
    {{- 'null' -}}
  {%- elif given is mapping -%}
    {{- '{' -}}
    {%- for key, inner in given | dictsort -%}
      {{- (quote(key) if quoted_keys else key) ~ ':' ~ value(inner, quoted_keys) -}}
      {{- ',' if not loop.last -}}
    {%- endfor -%}
    {{- '}' -}}
  {%- elif given is sequence -%}
    {{- '[' -}}
    {%- for inner in given -%}
      {{- value(inner, quoted_keys) ~ ('' if loop.last else ',') -}}
    {%- endfor -%}
    {{- ']' -}}
  {%- else -%}
    {{- given -}}
  {%- endif -%}
{%- endmacro -%}

{%- macro type_of(schema) -%}
  {%- if schema.type is string -%}
    {{- quote(schema.type | upper) -}}
  {%- else -%}
    {{- value(schema.type | map('upper') | list) -}}
  {%- endif -%}
{%- endmacro -%}

{%- macro members(properties) -%}
  {%- for key, schema in properties | dictsort -%}
    {{- key ~ ':' ~ property(schema) ~ ('' if loop.last else ',') -}}
  {%- endfor -%}
{%- endmacro -%}

{%- macro property(schema) -%}
  {%- set parts = namespace(list=[]) -%}
  {%- set kind = schema.get('type') | default('', true) -%}
  {%- if schema.get('description') -%}
    {%- set parts.list = parts.list + ['description:' ~ quote(schema.description)] -%}
  {%- endif -%}
  {%- if kind == 'string' and schema.get('enum') -%}
    {%- set parts.list = parts.list + ['enum:' ~ value(schema.enum)] -%}
  {%- endif -%}
  {%- if kind == 'array' and schema.get('items') is mapping and schema.get('items') -%}
    {%- set parts.list = parts.list + ['items:{' ~ element(schema['items']) ~ '}'] -%}
  {%- endif -%}
  {%- if schema.get('nullable') -%}
    {%- set parts.list = parts.list + ['nullable:true'] -%}
  {%- endif -%}
  {%- if kind == 'object' and schema.get('properties') is mapping -%}
    {%- set parts.list = parts.list + ['properties:{' ~ members(schema.properties) ~ '}'] -%}
    {%- if schema.get('required') -%}
      {%- set parts.list = parts.list + ['required:' ~ value(schema.required)] -%}
    {%- endif -%}
  {%- endif -%}
  {%- set parts.list = parts.list + ['type:' ~ (type_of(schema) if kind else quote(''))] -%}
  {{- '{' ~ parts.list | join(',') ~ '}' -}}
{%- endmacro -%}

{%- macro element(schema) -%}
  {%- for key, inner in schema | dictsort if inner is not none -%}
    {{- key ~ ':' -}}
    {%- if key == 'properties' -%}
      {{- '{' ~ (members(inner) if inner is mapping) ~ '}' -}}
    {%- elif key == 'type' -%}
      {{- type_of(schema) -}}
    {%- else -%}
      {{- value(inner) -}}
    {%- endif -%}
    {{- ',' if not loop.last -}}
  {%- endfor -%}
{%- endmacro -%}

{%- macro declaration(function) -%}
  {{- '<|tool>declaration:' ~ function.name ~ '{description:' -}}
  {{- quote(function.get('description') | default('', true)) -}}
  {%- set schema = function.get('parameters') -%}
  {%- if schema -%}
    {{- ',parameters:{' -}}
    {%- if schema.get('properties') -%}
      {{- 'properties:{' ~ members(schema.properties) ~ '},' -}}
    {%- endif -%}
    {%- if schema.get('required') -%}
      {{- 'required:' ~ value(schema.required) ~ ',' -}}
    {%- endif -%}
    {{- 'type:' ~ quote(schema.get('type') | default('object', true) | upper) ~ '}' -}}
  {%- endif -%}
  {{- '}<tool|>' -}}
{%- endmacro -%}

{%- macro pairs(given) -%}
  {%- for key, inner in given | dictsort -%}
    {{- key ~ ':' ~ value(inner, false) ~ ('' if loop.last else ',') -}}
  {%- endfor -%}
{%- endmacro -%}

{%- macro words(content) -%}
  {%- if content is string -%}
    {{- content -}}
  {%- elif content is sequence -%}
    {%- for part in content if part.type == 'text' -%}
      {{- part.text -}}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro -%}

{%- macro without_thoughts(text) -%}
  {%- for part in text.split('<channel|>') -%}
    {{- part.split('<|channel>')[0] -}}
  {%- endfor -%}
{%- endmacro -%}

{%- if not messages -%}
  {{- raise_exception('there are no messages') -}}
{%- endif -%}
{%- set thinks = enable_thinking is defined and enable_thinking -%}
{%- set has_system = messages[0].role in ['system', 'developer'] -%}
{%- set turns = messages[1:] if has_system else messages -%}
{{- '<bos>' -}}
{%- if thinks or tools or has_system -%}
  {{- '<|turn>system\n' ~ ('<|think|>\n' if thinks else '') -}}
  {%- if has_system -%}
    {{- words(messages[0].content) | trim -}}
  {%- endif -%}
  {%- for tool in tools or [] -%}
    {{- declaration(tool.get('function') or tool) -}}
  {%- endfor -%}
  {{- '<turn|>\n' -}}
{%- endif -%}

{#- `open`: the model's turn goes on, with what tools answer or with its next message. `unfinished`:
    of a message of the assistant, the `calls` are written, the `text` comes behind the answers. -#}
{%- set state = namespace(last_user=-1, open=false, unfinished=false, calls=[], answers=0, text='') -%}
{%- macro finish_message() -%}
  {%- if state.unfinished -%}
    {{- state.text -}}
    {%- set state.open = state.calls != [] and (state.answers == 0 or state.text == '') -%}
    {%- if state.calls and state.answers == 0 -%}
      {{- '<|tool_response>' -}}
    {%- elif not state.open -%}
      {{- '<turn|>\n' -}}
    {%- endif -%}
    {%- set state.unfinished = false -%}
  {%- endif -%}
{%- endmacro -%}

{%- for turn in turns -%}
  {%- if turn.role == 'user' -%}
    {%- set state.last_user = loop.index0 -%}
  {%- endif -%}
{%- endfor -%}

{%- for turn in turns -%}
  {{- '' if turn.role == 'tool' else finish_message() -}}
  {%- if turn.role == 'assistant' -%}
    {%- set calls = turn.get('tool_calls') or [] -%}
    {%- set thoughts = turn.get('reasoning') or turn.get('reasoning_content') -%}
    {{- '' if state.open else '<|turn>model\n' -}}
    {%- if thoughts and calls and loop.index0 > state.last_user -%}
      {{- '<|channel>thought\n' ~ thoughts ~ '\n<channel|>' -}}
    {%- endif -%}
    {%- for call in calls -%}
      {%- set arguments = call.function.arguments -%}
      {{- '<|tool_call>call:' ~ call.function.name ~ '{' -}}
      {{- pairs(arguments) if arguments is mapping else arguments -}}
      {{- '}<tool_call|>' -}}
    {%- endfor -%}
    {%- set state.unfinished = true -%}
    {%- set state.calls = calls -%}
    {%- set state.answers = 0 -%}
    {%- set state.text = without_thoughts(words(turn.content)) | trim -%}
  {%- elif turn.role == 'tool' -%}
    {%- if state.unfinished and state.calls -%}
      {%- set state.answers = state.answers + 1 -%}
      {%- set from = namespace(name=turn.get('name') | default('unknown', true)) -%}
      {%- for call in state.calls if call.get('id') and call.get('id') == turn.get('tool_call_id') -%}
        {%- set from.name = call.function.name -%}
      {%- endfor -%}
      {{- '<|tool_response>response:' ~ from.name ~ '{' -}}
      {%- if turn.content is mapping -%}
        {{- pairs(turn.content) -}}
      {%- else -%}
        {{- 'value:' ~ quote(words(turn.content)) -}}
      {%- endif -%}
      {{- '}<tool_response|>' -}}
    {%- endif -%}
  {%- elif turn.role == 'user' or turn.role == 'system' or turn.role == 'developer' -%}
    {%- set state.open = false -%}
    {{- '<|turn>' ~ ('user' if turn.role == 'user' else 'system') ~ '\n' -}}
    {{- words(turn.content) | trim ~ '<turn|>\n' -}}
  {%- else -%}
    {{- raise_exception('there is no role "' ~ turn.role ~ '"') -}}
  {%- endif -%}
{%- endfor -%}
{{- finish_message() -}}
{%- if add_generation_prompt and not state.open -%}
  {{- '<|turn>model\n' -}}
{%- endif -%}
)jinja";

}  // namespace slip
