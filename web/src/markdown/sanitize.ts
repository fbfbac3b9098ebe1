// Model output is hostile: a web page or a file it was shown may have told it what to write. Only
// the tags and attributes below survive, links lead to the web or to mail and nowhere else, and
// nothing is loaded: an image becomes a link to it.
import DOMPurify from 'dompurify';

const tags = [
  'a', 'b', 'blockquote', 'br', 'code', 'dd', 'del', 'details', 'dl', 'dt', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i',
  'img', 'input', 'ins', 'kbd', 'li', 'mark', 'ol', 'p', 'pre', 's', 'span', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody',
  'td', 'th', 'thead', 'tr', 'u', 'ul',
];
const attributes = ['href', 'src', 'alt', 'class', 'align', 'start', 'type', 'checked', 'disabled', 'colspan', 'rowspan', 'open'];
const safeLink = /^(?:https?|mailto):/i;
// Those that our own renderer writes. Others could borrow the look of the page's own controls.
const safeClass = /^(?:hljs(?:-[\w-]+)?|language-[\w+#.-]{1,30}|math|math-block|[a-z_]+_)$/;

const purify = DOMPurify(window);

purify.addHook('uponSanitizeAttribute', (_node, attribute) => {
  if (attribute.attrName === 'class') {
    attribute.attrValue = attribute.attrValue.split(/\s+/).filter((name) => safeClass.test(name)).join(' ');
  } else if (attribute.attrName === 'href' || attribute.attrName === 'src') {
    attribute.keepAttr = safeLink.test(attribute.attrValue);
  }
});

purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.nodeName === 'A' && node.hasAttribute('href')) {
    node.setAttribute('target', '_blank');
    node.setAttribute('rel', 'noopener noreferrer nofollow');
  }
});

// The result lies in a document of its own, where nothing loads or runs.
export function sanitize(html: string): HTMLElement {
  const body = purify.sanitize(html, {
    ALLOWED_TAGS: tags,
    ALLOWED_ATTR: attributes,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM: true,
  }) as HTMLElement;
  for (const image of body.querySelectorAll('img')) image.replaceWith(linkTo(image));
  for (const input of body.querySelectorAll('input')) keepOnlyTaskMark(input);
  return body;
}

function linkTo(image: HTMLImageElement): Node {
  const { ownerDocument } = image;
  const source = image.getAttribute('src') ?? '';
  const text = `Image: ${image.getAttribute('alt') || source || 'not shown'}`;
  if (!source) return ownerDocument.createTextNode(text);
  const link = ownerDocument.createElement('a');
  link.href = source;
  link.target = '_blank';
  link.rel = 'noopener noreferrer nofollow';
  link.textContent = text;
  return link;
}

function keepOnlyTaskMark(input: HTMLInputElement): void {
  if (input.type === 'checkbox') input.disabled = true;
  else input.remove();
}
