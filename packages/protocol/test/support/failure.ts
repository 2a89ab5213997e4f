/** The error of an action that has to fail. */
import { PesitError, decodeBody } from '../../src/index.js';
import type { Fpdu } from '../../src/index.js';
import { hex } from '../../src/testing/index.js';
import type { Name, MINIMAL } from '../../src/testing/index.js';

export type ControlName = keyof typeof MINIMAL;

export const decode = (name: Name, ...body: (string | Buffer)[]): Fpdu =>
  decodeBody(name, 1, 2, Buffer.concat(body.map((part) => (typeof part === 'string' ? hex(part) : part))));

export function failure(action: () => unknown): PesitError {
  try {
    action();
  } catch (error) {
    if (error instanceof PesitError) return error;
    throw error;
  }
  throw new Error('expected a PesitError, got none');
}
