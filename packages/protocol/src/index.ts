export type { ArticleBatch, ArticleSink, ArticleSource, Burst, SyncPoint } from './articles.js';
export { PesitError } from './errors.js';
export type { DiagnosticCode, Fault, PesitErrorDetails } from './errors.js';
