/** Arbitrary legal parameters for every FPDU, for round trips. */
import fc from 'fast-check';
import { CONTENTS, PARAMETERS } from '../../src/index.js';
import type { ContentItem, FpduName, ParameterKey, Parameters } from '../../src/index.js';

const text = (max: number): fc.Arbitrary<string> =>
  fc
    .uint8Array({ minLength: 1, maxLength: max })
    .map((bytes) =>
      Buffer.from(bytes)
        .toString('latin1')
        .replace(/[ \0]+$/, ''),
    )
    .filter((value) => value.length > 0);

function value(key: ParameterKey): fc.Arbitrary<unknown> {
  const row = PARAMETERS[key];
  switch (row.type) {
    case 'C':
      return text(row.max);
    case 'D':
      return fc.stringMatching(/^[0-9]{12}$/);
    case 'B':
      return fc.uint8Array({ minLength: 1, maxLength: Math.min(row.max, 600) }).map((bytes) => Buffer.from(bytes));
    case 'A':
      if (key === 'diagnostic') {
        return fc
          .tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 0xffff }))
          .map(([type, reason]) => `${type}-${String(reason).padStart(3, '0')}`);
      }
      if (key === 'syncPoints')
        return fc.record({
          intervalKb: fc.integer({ min: 0, max: 0xffff }),
          window: fc.integer({ min: 0, max: 0xff }),
        });
      return fc.constantFrom({ used: false, mode: 0 }, ...[1, 2, 3].map((mode) => ({ used: true, mode })));
    case 'N':
    case 'S':
    case 'M':
      if ('values' in row) return fc.constantFrom(...(row.values as readonly number[]));
      return fc.maxSafeNat().map((n) => n % Math.min(2 ** 53, 256 ** row.max));
    case 'G':
      throw new Error(`${key} is a group`);
  }
}

/** Every mandatory and expected parameter, and any choice of the optional ones; no empty groups. */
function contents(items: readonly ContentItem[]): fc.Arbitrary<Parameters> {
  const model: Record<string, fc.Arbitrary<unknown>> = {};
  for (const { key, members } of items) {
    model[key] = members.length === 0 ? value(key) : contents(members).filter((group) => Object.keys(group).length > 0);
  }
  const required = items.filter(({ presence }) => presence !== 'optional').map(({ key }) => key as string);
  return fc.record(model, { requiredKeys: required, noNullPrototype: true });
}

export const parametersOf = (name: FpduName): fc.Arbitrary<Parameters> => contents(CONTENTS[name]);
