import { FILE_TYPE_MESSAGE } from '@pesit-node/protocol';
import { readBytes } from '@pesit-node/service';
import { asPesitDate } from '@pesit-node/transfers';

import type { Job } from '../transfers/row.js';
import type { Completed, Work } from './work.js';

/** A message on its way out (§4.4.31): sent once. Whether the partner has it when no answer came, nobody can tell. */
export const messaging = (job: Job): Work => {
  const { settings, virtual_file: virtualFile, pesit_transfer_id: transferId } = job;
  const message = readBytes(settings.message ?? '');
  let sent = false;
  return {
    run: async (session, signal): Promise<Completed> => {
      sent = true;
      const request = {
        fileIdentifier: { fileType: settings.fileType ?? FILE_TYPE_MESSAGE, fileName: virtualFile ?? '' },
        transferId: transferId ?? 0,
        replyExpected: settings.expectReply ?? false,
        originalSender: settings.originalSender,
        finalReceiver: settings.finalReceiver,
        creationDate: settings.creationDate === undefined ? undefined : asPesitDate(settings.creationDate),
        message,
      };
      const { reply, dataCode: replyDataCode } = await session.sendMessage({ request, signal });
      const size = message.length;
      const done = { status: 'COMPLETED', size, bytesTransferred: size, articles: 0 } as const;
      return { ...done, reply: reply && Buffer.from(reply), replyDataCode };
    },
    startOver: () => Promise.resolve(false),
    get accepted() {
      return sent;
    },
    restartable: false,
    get repeatable() {
      return !sent;
    },
    totals: { dataBytes: 0, articles: 0 },
    syncPoint: 0,
    startPoint: undefined,
    facts: {},
    close: () => Promise.resolve(),
    cleanUp: () => Promise.resolve(),
  };
};
