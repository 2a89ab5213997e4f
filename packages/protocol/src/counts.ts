/** PI 27 and PI 28 at the end of a transfer (pesit-e.md §6). */
import type { SyncPoint } from './articles.js';
import { PesitError } from './errors.js';
import type { FpduName } from './fpdus.js';
import type { Parameters } from './parameters.js';

type Counts = Omit<SyncPoint, 'number'>;

/** PI 28 has four bytes: of more articles (343 GB in records of 80 bytes) it can say nothing. */
const MAX_ARTICLES = 0xffff_ffff;

/** PI 27 and, where it can hold them, PI 28. */
export const countsToSend = ({ dataBytes, articles }: Counts): Parameters =>
  articles > MAX_ARTICLES ? { dataBytes } : { dataBytes, articles };

/**
 * Compares the counts of the peer with ours: totals, or those of this attempt alone.
 * @param start where this attempt began
 * @param articlesMayDiffer in an ACK(TRANS.END) a wrong PI 28 beside a right PI 27 is noted only
 * @param notice told of what was tolerated
 * @throws PesitError 3-319
 */
export const checkCounts = (
  name: FpduName,
  { dataBytes, articles }: Parameters,
  {
    ours,
    start,
    articlesMayDiffer,
  }: { readonly ours: Counts; readonly start: Counts; readonly articlesMayDiffer: boolean },
  notice: (text: string) => void,
): void => {
  const compare = (given: number | undefined, total: number, before: number): boolean => {
    if (given === undefined || given === total) return true;
    if (before === 0 || given !== total - before) return false;
    notice(`${name}: the counts are those of the last attempt alone: accepted`);
    return true;
  };
  const bytesRight = compare(dataBytes, ours.dataBytes, start.dataBytes);
  const articlesRight = ours.articles > MAX_ARTICLES || compare(articles, ours.articles, start.articles);
  if (bytesRight && articlesRight) return;
  const expected = `${ours.dataBytes} bytes in ${ours.articles} articles`;
  const got = `${dataBytes ?? 'no number of'} bytes in ${articles ?? 'no number of'} articles`;
  if (bytesRight && articlesMayDiffer) {
    notice(`${name}: expected ${expected}, got ${got}: tolerated, as the bytes are right`);
    return;
  }
  throw new PesitError(`${name}: expected ${expected}, got ${got}`, {
    fault: 'remote',
    diagnostic: '3-319',
    expected,
    got,
  });
};
