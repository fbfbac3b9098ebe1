import { readFileSync } from 'node:fs';
import { defineConfig } from 'vite';
import { notices } from './notices.js';
import { singleFile } from './single-file.js';

const math = readFileSync(new URL('node_modules/temml/dist/temml.min.js', import.meta.url), 'utf8');
const server = 'http://127.0.0.1:8080';

export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [singleFile({ lateScripts: [math], notices: notices() })],
  build: {
    target: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: true,
  },
  // `npm run dev` shows changes at once and talks to a server or to tests/clients/mock.
  server: {
    proxy: Object.fromEntries(['/v1', '/health', '/props'].map((path) => [path, server])),
  },
});
