/** The two ends of a session, by their role. */
import { expect } from '@jest/globals';
import type { Role, SessionEvent } from '../../src/index.js';
import { diagnosticOf } from '../../src/testing/index.js';
import type { Dissected } from '../../src/testing/index.js';
import type { Pair } from './pair.js';

export const ROLES: readonly Role[] = ['requester', 'server'];
export const X = 5;
export const Y = 9;
export const other = (role: Role): Role => (role === 'requester' ? 'server' : 'requester');
export const eventsOf = (pair: Pair, role: Role): SessionEvent[] =>
  role === 'requester' ? pair.requesterEvents : pair.serverEvents;

/** The last FPDU is an ABORT (or IDT) with this diagnostic. */
export function expectLast(fpdus: readonly Dissected[], name: 'ABORT' | 'IDT', diagnostic: string): Dissected {
  const last = fpdus.at(-1)!;
  expect([last.name, diagnosticOf(last)]).toEqual([name, diagnostic]);
  return last;
}
