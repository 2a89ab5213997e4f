import { randomInt } from 'node:crypto';

import { FILE_TYPE_MESSAGE, printable } from '@pesit-node/protocol';

import type { Environment, Given } from '../frame/command.js';
import { overAttempts } from './attempts.js';
import { report } from './report.js';
import { targetOf } from './target.js';

/** One attempt alone: whether the partner has a message whose answer was lost, nobody can tell. */
const ONCE = { attempts: 1, initialDelay: 0, maxDelay: 0, multiplier: 1, jitter: 0 };

const send = async (given: Given, environment: Environment) => {
  const { options } = await targetOf(given, environment, 2);
  const { terminal, signal } = environment;
  const message = Buffer.from(given.required('TEXT'), 'latin1');
  const transferId = randomInt(1, 2 ** 24);
  const { result } = await overAttempts({
    ...{ options, policy: ONCE, signal, terminal },
    run: (session, interrupted) =>
      session.sendMessage({
        request: {
          fileIdentifier: { fileType: FILE_TYPE_MESSAGE, fileName: given.required('virtual-file') },
          ...{ transferId, message, replyExpected: given.has('expect-reply') },
          originalSender: given.text('original-sender'),
          finalReceiver: given.text('final-receiver'),
        },
        signal: interrupted,
      }),
  });
  return { transferId, size: message.length, reply: result.reply === undefined ? null : printable(result.reply) };
};

/** `pesit message`. */
export const message = (given: Given, environment: Environment): Promise<number> =>
  report(
    given,
    environment,
    () => send(given, environment),
    ({ size, reply }) => [
      `message of ${size} bytes taken by the partner`,
      ...(reply === null ? [] : [`the partner replies: ${reply}`]),
    ],
  );
