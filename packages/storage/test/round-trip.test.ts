import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { ArticleBatch } from '@pesit-node/protocol';
import fc from 'fast-check';
import { FileSource, StagedFile, formatOf, receivedFormat } from '../src/index.js';
import { drain } from './support/articles.js';
import { sandbox } from './support/sandbox.js';

/** Cuts articles into parts and batches at the given places, as sockets and segmentation do. */
function* received(articles: readonly Buffer[], cuts: readonly number[]): Generator<ArticleBatch> {
  let parts: Buffer[] = [];
  let ends: number[] = [];
  let next = 0;
  const flush = () => {
    const batch = { parts, ends, bytes: parts.reduce((sum, { length }) => sum + length, 0) };
    parts = [];
    ends = [];
    return batch;
  };
  for (const article of articles) {
    for (let from = 0; from < article.length;) {
      const cut = cuts.length === 0 ? 0 : cuts[next++ % cuts.length]!;
      const to = cut === 0 ? article.length : Math.min(article.length, from + cut);
      parts.push(article.subarray(from, to));
      from = to;
      if (cut % 3 === 2 && from < article.length) yield flush();
    }
    ends.push(parts.length);
    if (next % 5 === 0) yield flush();
  }
  yield flush();
}

/** What a text file holds after it crossed, by the table of pesit-e.md §6; written apart from the code under test. */
function crossedText(content: string, fixed: boolean): string {
  const lines = content.split('\n');
  const last = lines.pop() ?? '';
  const all = [
    ...lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line)),
    ...(last === '' ? [] : [last]),
  ];
  return all
    .map((line) => (fixed ? line.replace(/ +$/, '') : line === '' ? ' ' : line))
    .map((line) => `${line}\n`)
    .join('');
}

const names = ['BU', 'BV', 'BF', 'TV', 'TF'] as const;
const settings = {
  BU: {},
  BV: { recordFormat: 128 },
  BF: { recordFormat: 0 },
  TV: { recordFormat: 128, text: true },
  TF: { recordFormat: 0, text: true },
};
const character = fc.constantFrom('a', 'é', ' ', ' ', '\t', '\f', '\r', '\r\n', '\n', '\n', '\0');

test.each(names)('%s: file → articles → batches → staged file holds what the format promises', async (name) => {
  const directory = sandbox();
  let run = 0;
  const scenario = fc.record({
    recordLength: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 256, max: 600 })),
    records: fc.integer({ min: 0, max: 30 }),
    characters: fc.array(character, { maxLength: 200 }),
    capacity: fc.integer({ min: 1, max: 100 }),
    maxUnsegmentedArticle: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 250, max: 700 })),
    repeated: fc.constantFrom(1, 1, 20),
    interval: fc.integer({ min: 0, max: 60 }),
    cuts: fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(scenario, async ({ recordLength, records, characters, repeated, cuts, ...limits }) => {
      const text = name.startsWith('T');
      let content = characters.join('').repeat(repeated);
      if (name === 'BF') content = content.padEnd(recordLength * records, 'x').slice(0, recordLength * records);
      // Long lines are an error of their own; here every line fits.
      if (text)
        content = content
          .split('\n')
          .map((line) => line.slice(0, recordLength))
          .join('\n');
      const path = join(directory, 'source');
      writeFileSync(path, content, 'latin1');
      const format = formatOf({ ...settings[name], recordLength });
      const source = await FileSource.open(path, format);
      const { articles } = await drain(source, limits);
      await source.close();

      const staged = await StagedFile.create({
        receiveDirectory: directory,
        key: `${++run}`,
        format: receivedFormat(format, { text }),
      });
      for (const batch of received(articles, cuts)) staged.write(batch);
      const delivery = await staged.deliver({ path: 'out', overwrite: false });
      const arrived = readFileSync(delivery.path, 'latin1');
      rmSync(delivery.path);
      expect(arrived).toBe(text ? crossedText(content, name === 'TF') : content);
      expect(staged.articles).toBe(articles.length);
      if (!text) expect(delivery.checksum).toBe(source.checksum);
    }),
    { numRuns: 60 },
  );
});
