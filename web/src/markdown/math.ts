// Formulas as MathML. The typesetter is most of the page's code and most pages never need it, so
// it travels as text and is started when the first formula is met.
import source from 'temml/dist/temml.min.js?raw';

interface Typesetter {
  render(tex: string, into: Element, options: { displayMode: boolean; throwOnError: boolean; trust: boolean }): void;
}

interface ScriptPolicy {
  createScript(text: string): string;
}
type PolicyFactory = { createPolicy(name: string, rules: ScriptPolicy): ScriptPolicy };

let typesetter: Typesetter | null = null;

function load(): Typesetter {
  if (typesetter) return typesetter;
  // The page's policy allows exactly this text (its hash) and no other.
  const { trustedTypes } = window as { trustedTypes?: PolicyFactory };
  const policy = trustedTypes?.createPolicy('slipstream-math', { createScript: (text) => text });
  const script = document.createElement('script');
  script.text = policy ? policy.createScript(source) : source;
  document.head.append(script);
  typesetter = (window as unknown as { temml: Typesetter }).temml;
  return typesetter;
}

export function typeset(root: Element): void {
  for (const element of root.querySelectorAll('code.math')) {
    const tex = element.textContent ?? '';
    const formula = document.createElement('span');
    const displayMode = element.classList.contains('math-block');
    formula.className = displayMode ? 'formula formula-block' : 'formula';
    try {
      load().render(tex, formula, { displayMode, throwOnError: true, trust: false });
    } catch {
      continue; // stays as it was written
    }
    element.replaceWith(formula);
  }
}

// $$ … $$, \[ … \], \( … \) and $ … $; the last only where it cannot be money.
const forms = [/^\\\((.+?)\\\)/s, /^\\\[(.+?)\\\]/s, /^\$\$(.+?)\$\$/s, /^\$(?![\s\d.,]+\s)([^\s$](?:[^$\n]*?[^\s$\\])?)\$(?![\d\w])/];
const blockForm = /^ {0,3}(?:\$\$(.+?)\$\$|\\\[(.+?)\\\])[ \t]*(?:\n|$)/s;

const place = (text: string, pattern: RegExp): number | undefined => {
  const at = text.search(pattern);
  return at < 0 ? undefined : at;
};

// For marked. Formulas on lines of their own come first, lest a line that starts with + be a list.
export const mathExtensions = [
  {
    name: 'math',
    level: 'block' as const,
    start: (text: string) => place(text, /^ {0,3}(?:\$\$|\\\[)/m),
    tokenizer(text: string) {
      const match = blockForm.exec(text);
      return match ? { type: 'math', raw: match[0], text: (match[1] ?? match[2])!.trim(), block: true } : undefined;
    },
  },
  {
    name: 'inlineMath',
    level: 'inline' as const,
    start: (text: string) => place(text, /\$|\\[([]/),
    tokenizer(text: string) {
      const match = forms.map((form) => form.exec(text)).find((found) => found !== null);
      if (!match) return undefined;
      return { type: 'inlineMath', raw: match[0], text: match[1]!.trim(), block: /^(?:\$\$|\\\[)/.test(text) };
    },
  },
];
