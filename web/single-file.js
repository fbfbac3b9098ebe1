// Puts script and style into index.html and locks the page with a Content-Security-Policy that
// names exactly these by their hashes: nothing else runs, nothing is fetched but from the server
// that gave the page.
import { createHash } from 'node:crypto';

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

// Inside <script>, these two would end it or start a comment.
const escapeScript = (code) => code.replaceAll('</script', '<\\/script').replaceAll('<!--', '\\x3C!--');

function policy(script, style, lateScripts) {
  return [
    "default-src 'none'",
    `script-src ${[script, ...lateScripts].map(hash).join(' ')}`,
    `style-src ${hash(style)}`,
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types dompurify slipstream-math',
  ].join('; ');
}

// `lateScripts`: texts that the page itself may start as a script later on. `notices`: a comment at
// the end.
export function singleFile({ lateScripts, notices }) {
  return {
    name: 'single-file',
    apply: 'build',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const files = Object.values(bundle);
      const page = files.find((file) => file.fileName === 'index.html');
      const chunks = files.filter((file) => file.type === 'chunk');
      const styles = files.filter((file) => file.fileName.endsWith('.css'));
      if (chunks.length !== 1 || styles.length !== 1 || files.length !== 3) {
        throw new Error(`expected one script and one style, got ${files.map((file) => file.fileName)}`);
      }
      const script = escapeScript(chunks[0].code.trim());
      const style = String(styles[0].source).trim();
      const csp = policy(script, style, lateScripts);
      const html = String(page.source)
        .replace(/\s*<script[^>]*><\/script>/, '')
        .replace(/\s*<link rel="stylesheet"[^>]*>/, '')
        .replace('<!-- policy -->', () => `<meta http-equiv="Content-Security-Policy" content="${csp}">`)
        .replace('</head>', () => `<style>${style}</style>\n</head>`)
        .replace('</body>', () => `<script type="module">${script}</script>\n</body>`);
      page.source = `${html.trimEnd()}\n<!--\n${notices.replaceAll('--', '- -')}\n-->\n`;
      delete bundle[chunks[0].fileName];
      delete bundle[styles[0].fileName];
    },
  };
}
