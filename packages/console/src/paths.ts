/**
 * Paths of the console's pages, which the browser's half tells apart. Each of them is answered with the one document; a record's page
 * is below the page of its list (`/transfers/42`).
 */
export const PAGE_PATHS = [
  '/',
  '/transfers',
  '/send',
  '/partners',
  '/files',
  '/listeners',
  '/servers',
  '/certificates',
  '/audit',
  '/cluster',
  '/license',
  // `/metrics` is the scrape of Prometheus.
  '/figures',
] as const;
