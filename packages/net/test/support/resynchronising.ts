/** What the resynchronisation tests send, and the points in it. */
import { articlesOf } from './harness.js';
import { diagnostic } from './wire.js';

export const SYNC = { intervalKb: 1, window: 4 };
/** Two articles between two points. */
export const ARTICLES = articlesOf(Array<number>(60).fill(500));

export const point = (number: number): string => `${diagnostic('1-100')} 1201${number.toString(16).padStart(2, '0')}`;
export const at = (number: number) => ({ number, dataBytes: 1000 * number, articles: 2 * number });
