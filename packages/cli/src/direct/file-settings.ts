/** Settings of a transfer, from the flags of a command. */
import { CODE_PAGES, DEFAULT_CODE_PAGE } from '@pesit-node/protocol';
import type { FileRequest } from '@pesit-node/protocol';
import { COMPRESSIONS, compressionMode } from '@pesit-node/transfers';
import type { RetryPolicy, WantedCodePage } from '@pesit-node/transfers';

import type { Given } from '../frame/command.js';
import { DEFAULTS } from './flags.js';

/** Seconds of `transfer.retry` of the client app would be long for one who watches. */
export const retryPolicy = (given: Given): RetryPolicy => ({
  attempts: given.number('attempts') ?? DEFAULTS.attempts,
  initialDelay: 1000,
  maxDelay: 30_000,
  multiplier: 2,
  jitter: 0.2,
});

export const codePageIn = (given: Given): WantedCodePage => ({
  codePage: CODE_PAGES.find((name) => name === given.text('code-page')) ?? DEFAULT_CODE_PAGE,
  always: given.has('ebcdic'),
});

/** Parameters that CREATE and SELECT both carry, beside the names. */
export const extrasIn = (
  given: Given,
): Pick<FileRequest, 'compression' | 'originalSender' | 'finalReceiver' | 'freeMessage'> => {
  const free = given.text('free-message');
  const compression = COMPRESSIONS.find((name) => name === given.text('compression')) ?? 'none';
  return {
    compression: compressionMode(compression),
    originalSender: given.text('original-sender'),
    finalReceiver: given.text('final-receiver'),
    freeMessage: free === undefined ? undefined : Buffer.from(free, 'latin1'),
  };
};

/** PI 25. */
export const entitySizeIn = (given: Given): number => given.number('entity-size') ?? DEFAULTS.entitySize;
