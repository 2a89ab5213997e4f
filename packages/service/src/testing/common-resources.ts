/** Resources of both apps, for `describePutBack`. */
import type { Changeable } from './put-back.js';
import { selfSigned } from './pem.js';

const hook = (stores: NonNullable<Changeable['names']>): Changeable => ({
  collection: '/api/v1/hooks',
  table: 'hooks',
  minimal: { hookId: 'MINIMAL', enabled: false, target: 'exec:start-batch' },
  names: stores,
  full: {
    ...{
      hookId: 'FULL',
      enabled: false,
      description: 'd',
      events: ['transfer.failed'],
      direction: 'SEND',
      peers: ['A'],
    },
    ...{ virtualFiles: ['F'], target: 'https://batch.example/x', truststoreName: 't' },
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  },
});

/** Resources that both apps have, by path, and the stores that others of them name. Makes a certificate. */
export const commonResources = () => {
  const identity = selfSigned('put-back');
  const { certificate } = identity;
  const truststores = { '/api/v1/certificates/truststores': { name: 't', certificates: certificate } };
  const stores = { '/api/v1/certificates/keystores': { name: 'k', ...identity }, ...truststores };
  const keystore: Changeable = {
    collection: '/api/v1/certificates/keystores',
    table: 'keystores',
    minimal: { name: 'MINIMAL', ...identity },
    full: { name: 'FULL', ...identity, password: 'not needed' },
  };
  const truststore: Changeable = {
    collection: '/api/v1/certificates/truststores',
    table: 'truststores',
    minimal: { name: 'MINIMAL', certificates: certificate },
    full: { name: 'FULL', certificates: certificate, crls: null, crlUrls: [] },
  };
  const resources = {
    '/api/v1/hooks/{hookId}': hook(truststores),
    '/api/v1/certificates/keystores/{name}': keystore,
    '/api/v1/certificates/truststores/{name}': truststore,
  };
  return { resources, stores };
};
