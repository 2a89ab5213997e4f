/** The generated pages: no older than the tables, and whole. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import {
  AUTOMATA,
  DIAGNOSTICS,
  FPDU_NAMES,
  PARAMETERS,
  STATES,
  diagnosticsMarkdown,
  fpdusMarkdown,
  parametersMarkdown,
  statesMarkdown,
} from '../src/index.js';
import type { Role } from '../src/index.js';

const PAGES = {
  'diagnostics.md': diagnosticsMarkdown(),
  'protocol/parameters.md': parametersMarkdown(),
  'protocol/fpdus.md': fpdusMarkdown(),
  'protocol/states.md': statesMarkdown(),
};

test.each(Object.entries(PAGES))('docs/%s is what `npm run docs` writes', (page, text) => {
  expect(readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8')).toBe(text);
});

/** The cells of every table row, without heads and rules. */
const rows = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map((line) => line.slice(2, -2).split(' | '));

describe('every row of the tables is there', () => {
  test('diagnostics', () => {
    const codes = rows(PAGES['diagnostics.md'])
      .slice(1)
      .map(([code]) => code!.replaceAll('`', ''));
    expect(codes.sort()).toEqual(Object.keys(DIAGNOSTICS).sort());
    for (const row of rows(PAGES['diagnostics.md'])) expect([row[0], row.length]).toEqual([row[0], 5]);
  });

  test('parameters and FPDUs', () => {
    const codes = rows(PAGES['protocol/parameters.md'])
      .slice(1)
      .map(([code]) => Number(code));
    expect(codes).toEqual(Object.values(PARAMETERS).map(({ code }) => code));
    expect(
      rows(PAGES['protocol/fpdus.md'])
        .slice(1)
        .map(([name]) => name),
    ).toEqual(FPDU_NAMES);
  });

  test('states and transitions', () => {
    const text = PAGES['protocol/states.md'];
    for (const role of ['requester', 'server'] as const satisfies readonly Role[]) {
      const title = role === 'requester' ? 'Requester' : 'Server';
      const half = text
        .split(/^## /m)
        .filter((section) => section.startsWith(title))
        .join('');
      for (const [state, events] of Object.entries(AUTOMATA[role])) {
        if (Object.keys(events).length > 0)
          expect(half).toContain(`| ${state} | ${STATES[state as keyof typeof STATES].meaning}`);
        for (const [event, to] of Object.entries(events)) {
          const target = typeof to === 'string' ? to : to.to;
          if (target === 'DROP') continue;
          const words = `${event.startsWith('>') ? 'send' : 'receive'} ${event.slice(1)}`;
          const arrow = half.split('\n').find((line) => line.startsWith(`    ${state} --> ${target} : `));
          expect(arrow?.split(/ : |<br\/>/)).toContainEqual(
            expect.stringMatching(new RegExp(`^${words.replace(/[()+]/g, '\\$&')}( \\(|$)`)),
          );
        }
      }
    }
  });

  test('who has to act fits the advice', () => {
    for (const [code, { advice, fault }] of Object.entries(DIAGNOSTICS)) {
      if (advice.startsWith('nothing') && code !== '3-312') expect([code, fault]).toEqual([code, 'nobody']);
      if (advice.includes('both sides')) expect([code, fault]).toEqual([code, 'both']);
      if (advice.includes('side that answered')) expect([code, fault]).toEqual([code, 'answering']);
    }
  });
});
