import type { EventStream, Logger } from '@pesit-node/service';

import { TRANSFER_NOTED } from './events.js';
import { TRANSFER_NOTES } from './notes.js';

/** The log lines of all notes on transfers. @param idField field of a line that has the number of the transfer */
export const logNotes = (events: EventStream, logger: Logger, idField: 'transfer' | 'transferId'): void => {
  events.subscribe(TRANSFER_NOTED, ({ session, id, note, error, facts }) => {
    const [level, text] = TRANSFER_NOTES[note];
    logger[level]({ ...session?.facts, [idField]: id, ...facts, ...(error === undefined ? {} : { err: error }) }, text);
  });
};
