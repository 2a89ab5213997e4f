import { endpoint } from '@pesit-node/service';
import type { Routes } from '@pesit-node/service';
import { testFailed, testSucceeded } from '@pesit-node/transfers';
import { z } from 'zod';

import { PARTNER } from '../partners/fields.js';
import { fileId, partnerId, serverId } from '../schemas.js';
import type { TestPartner } from './partner-tests.js';

const params = z.strictObject({ partnerId: partnerId() });

const body = z
  .strictObject({
    password: PARTNER.rows.password.schema.meta({
      description: 'PI 5: only its hash is stored, so that it has to be given.',
      format: 'password',
      examples: [PARTNER.rows.password.example],
    }),
    serverId: serverId().meta({ description: 'The listener.', examples: ['NODE1'] }),
    virtualFile: fileId().optional().meta({ description: 'Whether the partner may use it is looked at, too.' }),
  })
  .meta({ id: 'PartnerTestRequest' });

const permission = z
  .object({
    allowed: z.boolean(),
    diagnostic: z.string().nullable().meta({ description: 'With which the partner would be refused.' }),
    message: z.string().nullable().meta({ description: 'Why, and what to change.' }),
  })
  .meta({ id: 'FilePermission' });

const notTried = z
  .array(z.string())
  .meta({ description: 'Sentences: what such a test cannot show, for this partner and this listener.' });

const answer = z
  .union([
    testSucceeded.extend({
      notTried,
      virtualFile: z
        .object({ fileId: z.string(), write: permission, read: permission })
        .nullable()
        .meta({ description: 'Whether it may write the virtual file (CREATE) and read it (SELECT); null: not asked.' }),
    }),
    testFailed.extend({ notTried }),
  ])
  .meta({ id: 'PartnerTest' });

export const partnerTestRoutes = (routes: Routes, test: TestPartner): void => {
  routes.resource('/api/v1/config/partners/:partnerId/test', {
    post: endpoint(
      {
        summary: 'Tries the login of a partner: this pod opens a PeSIT session with its own listener, and releases it',
        description:
          'On the real port, over TLS where the partner or the listener takes nothing else. No transfer; nothing that the partner shows of itself changes, and a wrong password does not count against it. It takes no place: on a listener that is full it says so when the login is right.',
        audit: ['partner', 'login tested'],
        role: 'operator',
        params,
        body,
        answers: { 200: answer, 404: 'There is no such partner, or no such listener.' },
      },
      async ({ params: { partnerId: id }, body: asked, res }) => res.json(await test(id, asked)),
    ),
  });
};
