/**
 * The web console: static files that both apps serve at `/`, without a login, since they say nothing about the node. Everything
 * that a page shows comes from the REST interface, with the login of the person in front of it.
 *
 * `consolePages` serves what `npm run build` made of `packages/console/web` (the browser's half) in `packages/console/site`.
 */
export { consolePages } from './pages.js';
export { PAGE_PATHS } from './paths.js';
