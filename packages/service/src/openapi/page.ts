/** `/docs`: Swagger UI over the document of the app. Everything comes from this service, so that it works without the internet. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

interface Asset {
  readonly contentType: string;
  readonly read: () => Promise<string>;
}

const require = createRequire(import.meta.url);

/** A file of the library, read once. */
const fromLibrary = (file: string, contentType: string): Asset => {
  let text: Promise<string> | undefined;
  const read = (): Promise<string> => {
    text ??= readFile(require.resolve(`swagger-ui-dist/${file}`), 'utf8').catch((error: unknown) => {
      text = undefined;
      throw error;
    });
    return text;
  };
  return { contentType, read };
};

/** The browser sends the login that it has; nothing asks elsewhere whether the document is valid. */
const START = `'use strict';
window.ui = SwaggerUIBundle({
  // Where the page was opened with a login in its address, fetch would refuse a relative one.
  url: new URL('openapi.json', location.origin + location.pathname).href,
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  displayRequestDuration: true,
  validatorUrl: null,
  syntaxHighlight: false,
});
`;

/** Parts of the page, by their names below `/docs/`. */
export const DOCS_ASSETS = {
  'swagger-ui.css': fromLibrary('swagger-ui.css', 'text/css'),
  'swagger-ui-bundle.js': fromLibrary('swagger-ui-bundle.js', 'text/javascript'),
  'start.js': { contentType: 'text/javascript', read: () => Promise.resolve(START) },
} as const satisfies Readonly<Record<string, Asset>>;

export type DocsAsset = keyof typeof DOCS_ASSETS;

const escape = (text: string): string =>
  text.replace(/[&<>"]/g, (one) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[one] ?? one);

/** No inline script or style: the policy of the interface lets the page through as it is. */
export const docsPage = (title: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<noscript>This page needs JavaScript; the document itself is at <a href="openapi.json">openapi.json</a>.</noscript>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;
