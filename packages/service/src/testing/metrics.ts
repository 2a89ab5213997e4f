import type { AppName } from '../config/keys.js';
import { Metrics } from '../metrics/metrics.js';
import { silentLogger } from './logger.js';

/** The metrics of an app of version 1.2.3. */
export const testMetrics = <A extends AppName>(app: A): Metrics<A> =>
  new Metrics({ app, version: '1.2.3', logger: silentLogger });

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const DESCRIPTION = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`);
const SAMPLE = new RegExp(`^(${NAME})(?:\\{((?:[a-z_]+="(?:[^"\\\\]|\\\\.)*",?)*)\\})? ([-+0-9.e]+|\\+Inf)$`);
/** Suffix of a sample of each type behind the name of its family (OpenMetrics 1.0, Metric Types). */
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total'],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
};

/**
 * Reads an answer in the OpenMetrics text format: `name{a="1",b="2"}` (labels in order) → value.
 * @throws {Error} naming the line that does not fit the format
 */
export const readOpenMetrics = (text: string): ReadonlyMap<string, number> => {
  const samples = new Map<string, number>();
  const types = new Map<string, string>();
  const refuse = (line: string, why: string): never => {
    throw new Error(`not OpenMetrics (${why}): ${line}`);
  };
  const lines = text.split('\n');
  if (lines.splice(-2).join('\n') !== '# EOF\n') refuse('(end)', 'no EOF');
  let family = '';
  for (const line of lines) {
    const [, keyword, name = '', rest = ''] = DESCRIPTION.exec(line) ?? [];
    if (keyword !== undefined) {
      if (keyword === 'TYPE' && types.has(name)) refuse(line, 'a family twice');
      if (keyword === 'TYPE') types.set(name, rest);
      family = name;
      continue;
    }
    const [, sample = '', labels = '', value] = SAMPLE.exec(line) ?? refuse(line, 'neither description nor sample');
    const suffixes = SUFFIXES[types.get(family) ?? ''] ?? refuse(line, 'a family without a type');
    if (!suffixes.some((suffix) => sample === family + suffix)) refuse(line, `not of ${family}`);
    const ordered = labels
      .match(/[a-z_]+="(?:[^"\\]|\\.)*"/g)
      ?.sort()
      .join(',');
    const key = ordered === undefined ? sample : `${sample}{${ordered}}`;
    if (samples.has(key)) refuse(line, 'a sample twice');
    samples.set(key, Number(value));
  }
  return samples;
};
