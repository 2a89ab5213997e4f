import type { EventStream, Logger } from '@pesit-node/service';

import { TRANSFER_ASIDE } from './events.js';
import { TRANSFER_ASIDES } from './asides.js';

/** The log lines of all asides on transfers. @param idField field of a line that has the number of the transfer */
export const logAsides = (events: EventStream, logger: Logger, idField: 'transfer' | 'transferId'): void => {
  events.subscribe(TRANSFER_ASIDE, ({ session, id, aside, error, facts }) => {
    const [level, text] = TRANSFER_ASIDES[aside];
    logger[level]({ ...session?.facts, [idField]: id, ...facts, ...(error === undefined ? {} : { err: error }) }, text);
  });
};
