// Markdown to blocks, and a block to safe nodes. A growing answer changes only in its last block,
// so the others are kept as they are.
import { Marked, type Token, type Tokens } from 'marked';
import { escapeHtml, highlight } from './highlight';
import { mathExtensions, typeset } from './math';
import { sanitize } from './sanitize';

const formulaSource = (token: Tokens.Generic): string =>
  `<code class="math${token.block ? ' math-block' : ''}">${escapeHtml(String(token.text))}</code>`;

const marked = new Marked({
  gfm: true,
  breaks: false,
  extensions: mathExtensions.map((extension) => ({ ...extension, renderer: formulaSource })),
  renderer: {
    code({ text, lang }: Tokens.Code): string {
      const language = (lang ?? '').trim().split(/\s/, 1)[0]!.toLowerCase();
      return `<pre><code class="language-${escapeHtml(language)}">${highlight(text, language)}\n</code></pre>\n`;
    },
  },
});

export interface Block {
  token: Token;
  look: string; // what decides how it is shown
}

// A link may end at a target that is defined in another block, even in one that is still to come.
export function blocksOf(markdown: string): Block[] {
  const tokens = marked.lexer(markdown);
  const targets = JSON.stringify(tokens.links);
  return tokens
    .filter((token) => token.type !== 'space' && token.type !== 'def')
    .map((token) => ({ token, look: token.raw.includes('[') ? token.raw + targets : token.raw }));
}

export function renderBlock(token: Token): DocumentFragment {
  const body = sanitize(marked.parser([token]));
  for (const pre of body.querySelectorAll('pre')) frameCode(pre);
  for (const table of body.querySelectorAll('table')) wrap(table, 'table-scroll');
  const fragment = document.createDocumentFragment();
  fragment.append(...body.childNodes);
  typeset(fragment as unknown as Element);
  return fragment;
}

function wrap(element: Element, className: string): HTMLElement {
  const frame = element.ownerDocument.createElement('div');
  frame.className = className;
  element.replaceWith(frame);
  frame.append(element);
  return frame;
}

// A bar with the language and a copy button; the click is handled where the answer is shown.
function frameCode(pre: HTMLPreElement): void {
  const language = /language-(\S+)/.exec(pre.firstElementChild?.className ?? '')?.[1] ?? '';
  const frame = wrap(pre, 'code-block');
  const bar = frame.ownerDocument.createElement('div');
  bar.className = 'code-bar';
  const name = frame.ownerDocument.createElement('span');
  name.textContent = language || 'text';
  const copy = frame.ownerDocument.createElement('button');
  copy.type = 'button';
  copy.className = 'copy-code';
  copy.textContent = 'Copy';
  copy.setAttribute('aria-label', language ? `Copy ${language} code` : 'Copy code');
  bar.append(name, copy);
  frame.prepend(bar);
  pre.tabIndex = 0;
}
