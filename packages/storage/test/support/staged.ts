/** The options of a staged file. */
import { formatOf } from '../../src/index.js';
import type { StagedFileOptions } from '../../src/index.js';

export const text = formatOf({ text: true, recordLength: 80 });

export const optionsIn = (receiveDirectory: string, more: Partial<StagedFileOptions> = {}): StagedFileOptions => ({
  receiveDirectory,
  key: 'k',
  format: text,
  memo: '{"partner":"P1"}',
  ...more,
});
